"""Answer a shuffled collection: python respondent.py ADDRESS QUESTION ANSWER [ANSWER ...], one respondent per answer.

A real device belongs to one person and keeps a ledger in a file: `Respondent("ledger.json")` sends a pending report
again, never spends epsilon twice, and can show later that the report took part.
"""

import sys

from tacit.client import Respondent


def main() -> None:
    address, question, *answers = sys.argv[1:]
    for answer in answers:
        # Opening verifies the document; answering verifies the session, adds noise, seals, and sends to the relay.
        receipt = Respondent().answer(address, {question: answer})
        print(f"{receipt.state}: slot {receipt.slot}")
        if receipt.state != "sent":
            sys.exit(f"not sent: {receipt.reason}")


if __name__ == "__main__":
    main()
