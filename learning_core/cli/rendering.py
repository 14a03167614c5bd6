"""How a person reads a result on a terminal. Comment text is quoted; nothing invisible reaches the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from learning_core.display import clean_field, quote_text


def render(name: str, result: Mapping[str, Any]) -> str:
    """The lines for a command's result, each ended by a newline."""
    lines = _RENDERERS[name](result)
    return "".join(f"{line}\n" for line in lines)


def _doctor(result: Mapping[str, Any]) -> list[str]:
    provider = result["provider"]
    lines = [f"scope      {result['scope']}"]
    lines += [f"{name:<10} {clean_field(why)}" for name, why in result["choices"].items()]
    lines.append(f"provider   {provider['name']} {provider['version']}, erasure: {provider['storage']['erasure']}")
    lines.append(f"data goes  {', '.join(provider['sendsTo']) or 'nowhere: it stays on this machine'}")
    health = result["health"]
    return [*lines, f"health     {'ok' if health['ok'] else 'NOT OK'}: {clean_field(health['detail'])}"]


def _grant(grant: Mapping[str, Any]) -> str:
    active = ", ".join(grant.get("active", grant["purposes"])) or "nothing (withdrawn)"
    return f"{grant['id']}  {active}  by {grant['grantedBy']['id']} on {grant['grantedAt'][:10]}"


def _grants_add(result: Mapping[str, Any]) -> list[str]:
    return ["Recorded.", _grant(result["grant"])]


def _grants_list(result: Mapping[str, Any]) -> list[str]:
    return [_grant(grant) for grant in result["grants"]] or ["No grants. Nothing may be used until somebody adds one."]


def _grants_withdraw(result: Mapping[str, Any]) -> list[str]:
    return ["Withdrawn; it takes effect at once.", _grant(result["grant"]), *_exports(result)]


def _exports(result: Mapping[str, Any]) -> list[str]:
    return [
        f"export {export['id']} of {export['exportedAt'][:10]} ({export['purpose']}) copied it: ask for its deletion"
        for export in result["exports"]
    ]


def _import(result: Mapping[str, Any]) -> list[str]:
    collection, imported = result["collection"], result["imported"]
    whole = "complete" if collection["complete"] else f"incomplete ({len(collection['gaps'])} lists)"
    new = f"{imported['episodes']} new threads, {imported['events']} new events"
    lines = [f"Snapshot {clean_field(collection['snapshotId'])}, {whole}: {new}."]
    if result["redacted"]:
        lines.append(f"Removed the text of {result['redacted']} events of deleted comments.")
    lines += [f"learning {memory} needs rebuilding" for memory in result["rebuild"]]
    for update in result["identityUpdates"]:
        lines.append(f"{len(update['events'])} comment versions now have a stable reviewer identity.")
        lines += [f"{memory} needs review: its evidence changed identity" for memory in update["memories"]]
    return [*lines, *_exports(result)]


def _label(result: Mapping[str, Any]) -> list[str]:
    usage = result["usage"]
    lines = [
        f"Asked about {result['considered']} comments, labelled {result['labeled']}; {result['remaining']} remain."
    ]
    if usage["inputTokens"] or usage["outputTokens"] or usage["nanoAiu"]:
        lines.append(
            f"{usage['requests']} requests, {usage['inputTokens']} + {usage['outputTokens']} tokens, "
            f"{usage['nanoAiu']} nano-AI units."
        )
    return lines


def _consolidate(result: Mapping[str, Any]) -> list[str]:
    lines = [f"{item['id']}  {item['theme']}" for item in result["stored"]]
    lines.insert(0, f"Stored {len(lines)} new or changed proposals.")
    if result["overBudget"]:
        lines.append(f"{result['overBudget']} more wait for the next run.")
    reasons = Counter(diagnostic["reason"] for diagnostic in result["diagnostics"])
    if reasons["below_threshold"]:
        lines.append(f"{reasons['below_threshold']} themes were raised too rarely; --json lists what each lacks.")
    if reasons["category_off"]:
        lines.append(
            f"{reasons['category_off']} themes are of categories that are switched off; "
            "consolidation.options.categories in config.json names those that are proposed."
        )
    held = [d for d in result["diagnostics"] if d["reason"] not in ("below_threshold", "category_off")]
    lines += [f"held back: {clean_field(d['theme'])}: {clean_field(d['detail'])} ({d['reason']})" for d in held]
    lines += [f"incomplete: no answer yet for {gap['from']} to {gap['to']}" for gap in result["missing"]]
    return lines


def _memories(result: Mapping[str, Any]) -> list[str]:
    rows = [_memory_row(row) for row in result["memories"]]
    return rows or ["No learnings yet."]


def _memory_row(row: Mapping[str, Any]) -> str:
    marks = [
        name for name in ("superseded", "conflicted", "damaged", "withheld", "identityNeedsReview") if row.get(name)
    ]
    text = quote_text(row["text"]) if row.get("text") else "(withheld)"
    noted = f" [{', '.join(marks)}]" if marks else ""
    return f"{row['id']}  {row.get('state', '?'):<8} {row.get('theme', '?')}{noted}  {text}"


def _show(result: Mapping[str, Any]) -> list[str]:
    memory = result["memory"]
    lines = [_memory_row(memory)]
    lines += [f"{name}  {memory[name]}" for name in ("reviewDigest", "contentDigest") if memory.get(name)]
    if memory.get("support"):
        lines += [f"{side}  {_counts(memory[side])}" for side in ("support", "dissent")]
        lines.append(f"why  {quote_text(memory['rationale'])}" if memory.get("rationale") else "why  (none given)")
    for side, title in (("counterevidence", "against"), ("evidence", "for")):
        lines += [f"{title}  {_reference(reference)}" for reference in memory.get(side, [])]
    for version in memory.get("history", []):
        state = "damaged" if version["damaged"] else version["state"]
        lines.append(
            f"version {version['version']}  {state}  {version.get('at', '')}  {version.get('reviewDigest', '')}"
        )
    return lines


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{value} {name}" for name, value in counts.items())


def _reference(reference: Mapping[str, Any]) -> str:
    comment = reference["comment"]
    if comment is None:
        return f"withheld: {reference['withheld']}"
    who = clean_field(comment["author"].get("login") or comment["author"].get("id") or "unknown")
    pin = reference["pin"]
    where = f"{clean_field(pin['prototypeId'])} build {pin['build']['number']}"
    why = "; ".join(clean_field(label["explanation"]) for label in reference["labels"] if label.get("explanation"))
    noted = f"  ({why})" if why else ""
    return f"{who}, {where}, {reference['writtenAt'][:10]}: {quote_text(comment['body'])}{noted}"


def _redact(result: Mapping[str, Any]) -> list[str]:
    lines = [f"Removed the text of {result['removed']} events."]
    lines += [f"learning {memory} needs rebuilding" for memory in result["rebuild"]]
    return [*lines, *_exports(result)]


def _recall(result: Mapping[str, Any]) -> list[str]:
    return str(result["text"]).splitlines()


def _observations(result: Mapping[str, Any]) -> list[str]:
    lines = []
    for event in result["events"]:
        payload = event["payload"]
        words = payload.get("body", payload.get("summary", payload.get("status", "")))
        lines.append(f"{event['id']}  {event['occurredAt'][:10]}  {event['type']:<13} {quote_text(words)}")
    return lines or ["Nothing that this purpose may use."]


def _export(result: Mapping[str, Any]) -> list[str]:
    manifest = result["manifest"]
    held = ", ".join(f"{count} {name}" for name, count in manifest["withheld"].items() if count) or "nothing"
    return [
        f"Wrote {len(manifest['records'])} records for {manifest['purpose']} to {clean_field(result['file'])}.",
        f"Held back: {held}. Manifest {manifest['id']}.",
    ]


def _status(result: Mapping[str, Any]) -> list[str]:
    lines = [f"{name:<12} {value}" for name, value in result["counts"].items()]
    for item in result["attention"]:
        subject = next((str(value) for key, value in item.items() if key != "code"), "")
        lines.append(f"attention: {item['code']} {clean_field(subject)}")
    return lines


def _verify(result: Mapping[str, Any]) -> list[str]:
    total = sum(result["checked"].values())
    lines = [f"Checked {total} records; completeness {result['completeness']}."]
    lines += [
        f"problem: {p['code']} {clean_field(str(p['recordId']))}: {clean_field(p['detail'])}"
        for p in result["problems"]
    ]
    return [*lines, "Everything holds." if result["ok"] else f"{len(result['problems'])} problems."]


_RENDERERS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "doctor": _doctor,
    "grants add": _grants_add,
    "grants list": _grants_list,
    "grants withdraw": _grants_withdraw,
    "import hub-comments": _import,
    "label": _label,
    "consolidate": _consolidate,
    "redact": _redact,
    "memories": _memories,
    "show": _show,
    "accept": _show,
    "reject": _show,
    "retire": _show,
    "supersede": _show,
    "revise": _show,
    "recall": _recall,
    "observations": _observations,
    "export": _export,
    "status": _status,
    "verify": _verify,
}
