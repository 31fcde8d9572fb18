/** Every error the device raises on purpose. A message never contains a private value. */
export class TacitError extends Error {
  /** Stated here because a minifier renames classes. */
  get name() {
    return "TacitError";
  }
}

/** What methods say that every kind has to define for itself. */
export const ABSTRACT = "abstract";

/** A mechanism, domain or budget that cannot exist. */
export class InvalidSpec extends TacitError {
  get name() {
    return "InvalidSpec";
  }
}

/** A private value outside its declared domain; the value itself is never part of the message. */
export class InvalidValue extends TacitError {
  get name() {
    return "InvalidValue";
  }
}
