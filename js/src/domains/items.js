/** Sets of listed items. The twin of `tacit.device.domains.items`. */

import { areDifferent } from "../numbers/checks.js";
import { Ordered } from "./domain.js";

/** Sets of items out of a list, the empty set included; `most` limits how many one answer may hold. */
export class Items extends Ordered {
  static kind = "items";
  static fields = ["name", "labels", "most"];

  check() {
    super.check();
    const { most } = /** @type {any} */ (this);
    /** @type {number | null} */
    this.most = most === null ? most : this.checkInteger("most", 1, this.size);
  }

  /** The places of the items, increasing. @param {any} value @returns {any} */
  encode(value) {
    if (!Array.isArray(value)) return this.refuse("must be a list of declared items");
    const places = value.map((item) => super.encode(String(typeof item === "string" && item)));
    if (!areDifferent(places)) this.refuse("must name an item once");
    if (this.most && places.length > this.most) this.refuse(`must have at most ${this.most} items`);
    return places.sort((a, b) => a - b);
  }

  unlisted() {
    return this.refuse("must hold declared items only");
  }
}
