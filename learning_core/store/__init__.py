"""The learning store: the only writer, and the one place where every rule is applied.

Each mutator has one shape: load checked evidence, let a pure function plan, commit the plan in one provider write, and
plan again when something that was read has moved. Results are plain JSON, the same that the command prints.

The store checks what a provider, a labeler and a consolidator return. It does not check that a person may act in a
repository: the host does, before it calls.
"""

from learning_core.store.base import NOTHING_WITHHELD
from learning_core.store.checking import CheckOperations
from learning_core.store.collecting import CollectionOperations
from learning_core.store.consenting import ConsentOperations
from learning_core.store.consolidating import ConsolidationOperations
from learning_core.store.deciding import DecisionOperations
from learning_core.store.exporting import ExportOperations
from learning_core.store.labeling import LabelingOperations
from learning_core.store.recalling import RecallOperations

__all__ = ["NOTHING_WITHHELD", "LearningStore"]


class LearningStore(
    ConsentOperations,
    CollectionOperations,
    LabelingOperations,
    ConsolidationOperations,
    DecisionOperations,
    RecallOperations,
    ExportOperations,
    CheckOperations,
):
    """One scope's learning loop over a provider.

    `withheld_comments` of a call are Hub comment IDs whose removal or edit the host knows before it is stored: whatever
    cites them is withheld.
    """
