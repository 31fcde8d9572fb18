"""The client of a respondent: verify a document, perturb once, keep a ledger, send until the collector has it.

Standard library only. An answer neither leaves the device nor is stored. What leaves it is the noisy report and, where
a collection has them, its public columns and the invitation. The ledger keeps these, and for memoised collections a
secret under which guesses of past answers can be tested.
"""

from tacit.client.ledger import AlreadyAnswered, Ledger, LedgerUnusable, Receipt, Spending, Spent
from tacit.client.respondent import Respondent
from tacit.client.transport import Patience, Transport, Unreachable

__all__ = [
    "AlreadyAnswered",
    "Ledger",
    "LedgerUnusable",
    "Patience",
    "Receipt",
    "Respondent",
    "Spending",
    "Spent",
    "Transport",
    "Unreachable",
]
