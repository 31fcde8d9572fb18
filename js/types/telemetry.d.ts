/** Telemetry of an application that asks its user: on, local only or off. */

import type { Receipt, Respondent, Row, WireBudget } from "../index.js";

export type Mode = "on" | "local" | "off";
export const MODES: readonly Mode[];

/** One report as its owner may see it: all that leaves the device, and where it stands. */
export interface ShownReport {
  collection: string;
  title: string;
  epsilon: WireBudget;
  state: "held" | "pending" | "sent" | "refused";
  /** The noisy bytes in hexadecimal; any answer could have produced them. */
  report: string;
  row: Row | null;
  server: string;
}

export class Telemetry {
  /** `refused` tells whether the browser itself says no: Global Privacy Control and Do Not Track by default. */
  constructor(options?: {
    storage?: Pick<Storage, "getItem" | "setItem">;
    respondent?: Respondent;
    refused?: () => boolean;
  });
  /** What the user has decided; "local" before that. */
  mode: Mode;
  /** Answer a collection as far as the user allows; null if that is not at all. */
  report(address: string, answers: Record<string, unknown>, options?: { row?: Row }): Promise<Receipt | null>;
  /** Everything that was drawn on this device, sent or not. */
  shown(): ShownReport[];
  /** Send what was kept while it was local only; nothing unless the mode is on. */
  release(): Promise<Receipt[]>;
  /** Send what waits for a network; nothing unless the mode is on. */
  flush(): Promise<Receipt[]>;
}
