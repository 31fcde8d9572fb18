"""The client of a respondent: verify a document, perturb once, keep a ledger, send until the collector has it.

Standard library only, except for `sealed`, which is loaded for shuffled collections alone. Of a private answer, nothing
but the noisy report leaves the device or is stored. Sent beside it, as they are: the id of the collection, a random
batch id, the invitation or anonymous token of a collection that asks for it, and the public columns of one that takes
rows. The ledger keeps these with the noisy bytes, the address of the collector, the budget and the state of sending;
for shuffled collections also the sealed bytes and their slot; for memoised collections also the device's secret and
keyed hashes of past values, with which whoever takes the file can test guesses of those answers.
"""

from tacit.client.ledger import AlreadyAnswered, Ledger, LedgerUnusable, Receipt, Spending, Spent
from tacit.client.respondent import Respondent
from tacit.client.telemetry import Telemetry
from tacit.client.tokens import TokenRefused
from tacit.client.transport import Patience, Transport, Unreachable
from tacit.client.trustee import Delivery, Trustee
from tacit.client.windows import AccountView, Tick, WindowedCollection

__all__ = [
    "AccountView",
    "AlreadyAnswered",
    "Delivery",
    "Ledger",
    "LedgerUnusable",
    "Patience",
    "Receipt",
    "Respondent",
    "Spending",
    "Spent",
    "Telemetry",
    "Tick",
    "TokenRefused",
    "Transport",
    "Trustee",
    "Unreachable",
    "WindowedCollection",
]
