/** Why a report is not sealed: errors of shuffled collections, which the base of the bundle does without. */

import { TacitError } from "../errors.js";

/** What parties of a shuffle published is not as it must be: take no part. */
export class ProtocolViolation extends TacitError {
  get name() {
    return "ProtocolViolation";
  }
}

/** Why a report cannot be sealed on this page, by the word that pages look up to say it in their own language. */
const HINDRANCES = {
  insecure: "the page was not served over https, and browsers seal nothing on other pages; open it over https",
  browser: "this browser lacks X25519, Ed25519 or AES-GCM; use a newer one",
  mode: "this client does not know the mode of the shuffle; answer by the Python client",
};

/** Reports must be sealed here, and cannot be; they are never sent in the clear instead. */
export class CannotSeal extends TacitError {
  /** @param {keyof typeof HINDRANCES} reason */
  constructor(reason) {
    super(`sealing: ${HINDRANCES[reason]}; nothing was sent in the clear`);
    this.reason = reason;
  }

  get name() {
    return "CannotSeal";
  }
}
