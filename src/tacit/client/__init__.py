"""The client of a respondent: verify a document, perturb once, keep a ledger, send until the collector has it.

Standard library only. Nothing but the noisy report ever leaves the device, and nothing but the noisy report is stored.
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
