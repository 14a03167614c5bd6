"""Times: one text for one instant, and text order is time order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning_core.errors import InvalidTimestamp
from learning_core.timestamps import BEGINNING, format_instant, normalize, normalize_bound, system_clock
from tests.core.contract_files import schemas, validators

NORMALIZED = {
    "2026-11-30T12:00:00.000000Z": "2026-11-30T12:00:00.000000Z",
    "2026-11-30T12:00:00Z": "2026-11-30T12:00:00.000000Z",
    "2026-11-30T12:00:00.1Z": "2026-11-30T12:00:00.100000Z",
    "2026-11-30T12:00:00.123Z": "2026-11-30T12:00:00.123000Z",
    "2026-11-30T12:00:00.12345Z": "2026-11-30T12:00:00.123450Z",
    "2026-11-30T12:00:00+00:00": "2026-11-30T12:00:00.000000Z",
    "2026-11-30T12:00:00-00:00": "2026-11-30T12:00:00.000000Z",
    "2026-11-30T12:00:00+02:00": "2026-11-30T10:00:00.000000Z",
    "2026-11-30T12:00:00.5-05:30": "2026-11-30T17:30:00.500000Z",
    "2026-12-31T23:59:59.999999-00:01": "2027-01-01T00:00:59.999999Z",
    "2026-01-01T00:00:00+23:59": "2025-12-31T00:01:00.000000Z",
    "2024-02-29T00:00:00Z": "2024-02-29T00:00:00.000000Z",
    "0001-01-01T00:00:00Z": BEGINNING,
    "9999-12-31T23:59:59.999999Z": "9999-12-31T23:59:59.999999Z",
}

REFUSED = {
    "no zone": "2026-11-30T12:00:00",
    "a date alone": "2026-11-30",
    "nothing": "",
    "seven fraction digits": "2026-11-30T12:00:00.1234567Z",
    "a fraction without digits": "2026-11-30T12:00:00.Z",
    "a comma": "2026-11-30T12:00:00,5Z",
    "no seconds": "2026-11-30T12:00Z",
    "a space for T": "2026-11-30 12:00:00Z",
    "lower case": "2026-11-30t12:00:00z",
    "basic form": "20261130T120000Z",
    "a week date": "2026-W49-1T12:00:00Z",
    "an offset without a colon": "2026-11-30T12:00:00+0200",
    "an offset of hours": "2026-11-30T12:00:00+02",
    "an offset of a day": "2026-11-30T12:00:00+24:00",
    "an offset with minute 60": "2026-11-30T12:00:00+01:60",
    "hour 24": "2026-11-30T24:00:00Z",
    "minute 60": "2026-11-30T12:60:00Z",
    "a leap second": "2026-12-31T23:59:60Z",
    "month 13": "2026-13-01T00:00:00Z",
    "month 0": "2026-00-01T00:00:00Z",
    "30 February": "2026-02-30T00:00:00Z",
    "29 February of a common year": "2026-02-29T00:00:00Z",
    "31 April": "2026-04-31T00:00:00.000000Z",
    "year 0": "0000-01-01T00:00:00.000000Z",
    "before year 1": "0001-01-01T00:00:00+00:01",
    "after year 9999": "9999-12-31T23:59:59-00:01",
    "five digits of a year": "12026-11-30T12:00:00Z",
    "Arabic digits": "٢٠٢٦-11-30T12:00:00Z",
    "full-width digits": "２０２６-11-30T12:00:00Z",
    "a trailing newline": "2026-11-30T12:00:00.000000Z\n",
    "a leading space": " 2026-11-30T12:00:00Z",
    "a NUL": "2026-11-30T12:00:00Z\x00",
}

INSTANTS = st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29))  # noqa: DTZ001
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59)


@pytest.mark.parametrize("text", NORMALIZED)
def test_a_time_is_normalized(text: str) -> None:
    assert normalize(text) == NORMALIZED[text]
    assert normalize(normalize(text)) == normalize(text)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_time_is_refused(name: str) -> None:
    with pytest.raises(InvalidTimestamp) as refusal:
        normalize(REFUSED[name])
    assert "\n" not in refusal.value.message
    assert "\x00" not in refusal.value.message


def spell(instant: datetime, offset: int, digits: int) -> str:
    """An instant in the zone of an offset, with at least `digits` fraction digits."""
    local = instant.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=offset)))
    fraction = f"{local.microsecond:06d}".rstrip("0").ljust(digits, "0")
    sign, minutes = ("-", -offset) if offset < 0 else ("+", offset)
    zone = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{local:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + (f".{fraction}" if fraction else "") + zone


@given(INSTANTS, OFFSETS, OFFSETS, st.integers(0, 6))
def test_every_spelling_of_an_instant_is_one_text(instant: datetime, first: int, second: int, digits: int) -> None:
    expected = instant.isoformat(timespec="microseconds") + "Z"
    assert normalize(spell(instant, first, digits)) == normalize(spell(instant, second, 6)) == expected
    assert format_instant(instant.replace(tzinfo=UTC)) == expected


@given(INSTANTS, INSTANTS | st.none(), OFFSETS, OFFSETS, st.integers(-2, 2))
def test_text_order_is_time_order(one: datetime, other: datetime | None, first: int, second: int, apart: int) -> None:
    """Also for instants that are a few microseconds apart."""
    other = one + timedelta(microseconds=apart) if other is None else other
    before, after = normalize(spell(one, first, 0)), normalize(spell(other, second, 0))
    assert (before < after, before == after) == (one < other, one == other)


@given(INSTANTS, OFFSETS, st.integers(0, 6))
def test_the_contracts_accept_what_is_normalized(instant: datetime, offset: int, digits: int) -> None:
    spelled = spell(instant, offset, digits)
    assert verdicts("inputTimestamp", spelled) == (True, True)
    assert verdicts("timestamp", normalize(spelled)) == (True, True)


@pytest.mark.parametrize("name", REFUSED)
def test_the_contracts_refuse_what_has_not_the_form_of_a_time(name: str) -> None:
    """A schema cannot know the calendar: what it accepts may still be refused when it is read."""
    calendar = {"30 February", "29 February of a common year", "31 April", "year 0", "before year 1", "after year 9999"}
    accepted = name in calendar
    assert verdicts("inputTimestamp", REFUSED[name]) == (accepted, accepted)


def verdicts(definition: str, text: str) -> tuple[bool, bool]:
    """The verdicts of both validators on a text, through a member that has this definition."""
    kind, member = {"timestamp": ("evidence-ref", "writtenAt"), "inputTimestamp": ("hub-comment-log", "capturedAt")}[
        definition
    ]
    schema = schemas()[f"{kind}.schema.json"]
    assert schema["properties"][member] == {"$ref": f"common.schema.json#/$defs/{definition}"}
    reference, fast = validators(kind)
    return (
        not any(list(error.absolute_path) == [member] for error in reference.iter_errors({member: text})),
        not any(list(error.instance_path) == [member] for error in fast.iter_errors({member: text})),
    )


def test_a_bound_may_be_a_date() -> None:
    assert normalize_bound("2026-11-30") == "2026-11-30T00:00:00.000000Z"
    assert normalize_bound("2026-11-30T01:00:00+01:00") == "2026-11-30T00:00:00.000000Z"
    with pytest.raises(InvalidTimestamp):
        normalize_bound("yesterday")


def test_the_clock_tells_a_normal_time() -> None:
    now = system_clock()
    assert normalize(now) == now
