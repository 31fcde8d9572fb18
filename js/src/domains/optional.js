/** Questions that need not be answered. The twin of `tacit.device.domains.optional`. */

import { Booleans, Categories, Domain, Ordered, specText } from "./domain.js";
import { InvalidSpec } from "../errors.js";
import { Items } from "./items.js";
import { kindsOf } from "../nested.js";
import { Buckets, Integers } from "./reals.js";

const KINDS = [Categories, Ordered, Booleans, Integers, Buckets, Items];
const MAX_LABELS = 2 ** 20;

/** The domain inside, which may be given as its spec. @param {any} given @returns {any} */
function inner(given) {
  const kind = KINDS.find((one) => one.kind === given?.kind);
  if (kind) return given instanceof Domain ? given : kind.fromSpec(given);
  throw new InvalidSpec(`optional: the kind of domain must be one of ${kindsOf(KINDS)}`);
}

/** The answers of another domain, and a last one for whoever declines: null, or the label of that answer. */
export class OptionalDomain extends Domain {
  static kind = "optional";
  static fields = ["domain", "declined"];

  check() {
    this.domain = inner(/** @type {any} */ (this).domain);
    /** @type {string} */
    this.declined = specText(/** @type {any} */ (this).declined, this.who, "declined", 256);
    const { labels, other, size } = this.domain;
    if (size >= MAX_LABELS) this.reject(`an optional question may have at most ${MAX_LABELS - 1} answers`);
    if ([...(labels ?? []), other].includes(this.declined)) this.reject("declined must differ from every label of the domain");
  }

  get who() {
    return this.domain.name;
  }

  get size() {
    return this.domain.size + 1;
  }

  /** The index of an answer; the last one if there is none. @param {any} value */
  encode(value) {
    const { domain, declined } = this;
    if (value !== null && value !== declined) return domain.encode(value);
    return domain instanceof Items ? [domain.size] : domain.size;
  }

  /** @param {number} index */
  label(index) {
    return index === this.domain.size ? this.declined : this.domain.decode(index);
  }
}
