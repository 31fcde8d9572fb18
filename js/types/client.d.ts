/** The client of a respondent: verify a document, perturb once, keep a ledger, send until the collector has it. */

import type { Coins, Device, TacitError, WireBudget } from "../index.js";
import type { Domain } from "./domains.js";

/** Text by language, such as {"en": "..."}. */
export type Texts = Record<string, string>;

export interface Question {
  name: string;
  text: Texts;
  domain: Domain;
  task: string;
}

/** Public columns that come with every report and stay linked to it: they are not protected. */
export interface Rows {
  /** The name of the table in SQL. */
  table: string;
  columns: readonly { name: string; type: "integer" | "number" | "text" | "boolean" | "date" }[];
}

/** Values by public column. */
export type Row = Record<string, number | string | boolean | null>;

/** Somebody who runs a role; the identity is an Ed25519 public key in hexadecimal. */
export interface Party {
  name: string;
  identity: string;
}

/** Where reports are sealed for shufflers: who they are, and under which terms they mix reports. */
export interface ShuffleTerms {
  mode: "relay" | "ss" | "osh" | "osh-z" | "peos-dgk";
  collector: Party;
  shufflers: readonly (Party & { url: string })[];
  relay: { name: string; url: string } | null;
  minimum: number;
  maximum: number;
  fakes: number;
  spot_checks: number;
  /** A probability in scientific form, such as "1e-9". */
  delta: string;
  /** Groups of roles that one party runs, such as [["collector", "shuffler_1"]]. */
  together: readonly (readonly string[])[];
}

/** A collection document, checked. */
export class Collection {
  /** Read a document, as text or parsed, and load the kinds that it needs. Numbers of a text must be integers. */
  static read(document: unknown): Promise<Collection>;
  /** `kinds` are those of mechanisms and families that the document may use, such as all: [...KINDS, ...FAMILIES]. */
  constructor(document: unknown, kinds: ReadonlyArray<unknown>);
  /** SHA-256 of the canonical document, in hexadecimal. */
  readonly id: string;
  readonly version: 1 | 2;
  readonly title: Texts;
  readonly about: Texts;
  readonly questions: readonly Question[];
  readonly policy: "single" | "one_of" | "all_of" | "joint";
  readonly mechanism: Device;
  /** The privacy budget of one respondent. */
  readonly epsilon: WireBudget;
  readonly minimum_cohort: number;
  readonly retention_days: number;
  readonly origins: readonly string[];
  readonly invitations: boolean;
  /** The adaptive plan that this document is a round of, if there is one. */
  readonly plan: Record<string, any> | null;
  /** What goes along with a report, if anything does. */
  readonly rows: Rows | null;
  /** Under which terms reports are shuffled, if they are: they are sealed for a session of these parties. */
  readonly shuffle: ShuffleTerms | null;
  /** Whether reports are shuffled and no party runs two roles: only then may the document claim amplification. */
  readonly rolesApart: boolean;
  /** What a respondent takes part in once: the first document of the plan, or this one. */
  readonly planId: string;
  /** The mechanism of every question; of questions that are asked together, the one of all. */
  readonly members: readonly Device[];
  /** Answers by question name as the value that the mechanism perturbs, or InvalidValue. */
  encode(answers: Record<string, any>): any;
  /** A row with all public columns, null where one is left out, or InvalidValue; null if the document has no columns. */
  checkRow(row?: Row | null): Row | null;
}

export type State = "held" | "pending" | "sent" | "refused";

/** What a respondent is told about a report. */
export interface Receipt {
  collection: string;
  batch: string;
  epsilon: WireBudget;
  /**
   * Held: made and kept, its owner has not agreed to send it. Pending: to be sent until the collector acknowledges it.
   * Sent: acknowledged. Refused: for good.
   */
  state: State;
  /** Why the collector refused it, or what a sealed report waits for. */
  reason: string;
  /** The session that a report was sealed for, where reports are shuffled. */
  session?: string;
  /** Its random place in that session, by which `Respondent.check` finds out whether it took part. */
  slot?: string;
}

/** A report as it was sealed for the shufflers of one session, in hexadecimal; these bytes never change. */
export interface Sealed {
  session: string;
  slot: string;
  /** The address of the relay that parts go through; empty if they go straight to the shufflers. */
  relay: string;
  /** In a chain one, for the first shuffler; else one for each. */
  parts: { url: string; key: string; body: string }[];
  shufflers: string[];
  /** The keys of all shufflers, for questions through the relay. */
  keys?: string[];
  /** So many shufflers must say that the session was aborted before the report is sealed again. */
  enough: number;
  /** What shows that the slot took part, kept because shufflers erase theirs and what is published may vanish. */
  proof: { slot: string; index: number; path: string[]; root: string; n: number } | null;
  took_part: boolean;
}

/** A session that all parties signed by the keys that the document pins, and that agrees with its terms. */
export interface Session {
  /** SHA-256 of the canonical session, in hexadecimal. */
  id: string;
  mode: string;
  /** Seconds since 1970. */
  closes: number;
  /**
   * A claim of the operators, as decimal text: epsilon against the collector; against it and all other respondents;
   * against it and the shufflers. This client does not compute it again.
   */
  certificate: { epsilon: string; epsilon_others: string; local_epsilon: string; delta: string; n_min: number; [field: string]: unknown };
  [field: string]: unknown;
}

/** What is known about the part that a sealed report took. */
export interface Inclusion {
  /**
   * Waiting: slots are not agreed yet. Shown: a shuffler shows the slot, the signatures of all are not published yet.
   * Included: all shufflers signed for it. Missing: no shuffler showed it.
   */
  state: "waiting" | "shown" | "included" | "missing" | "aborted";
  /** How many took part; 0 where that is not known. */
  respondents: number;
}

/** A report, perturbed once, in hexadecimal; every attempt to send it sends the same bytes. */
export interface Entry extends Receipt {
  base: string;
  title: Texts;
  member: number;
  report: string;
  invitation: string;
  /** What is answered once: see `Collection.planId`. */
  plan: string;
  /** The public columns that go along with it; ledgers from before there were any lack it. */
  row?: Row | null;
  /** Where reports are shuffled: what is sent in the place of `report`; null before it was sealed. */
  sealed?: Sealed | null;
}

/** What an answer may come with. */
export interface Options {
  /** The document, if it was opened before. */
  collection?: Collection;
  invitation?: string;
  /** The public columns, where the document has any. */
  row?: Row;
}

/** `localStorage`, or anything like it. */
export interface Store {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** What this device answered: never an answer, nor anything that is looked up by one. */
export class Ledger {
  constructor(store: Store);
  read(): { entries: Entry[]; secret: string; memories: Record<string, { seen: string[]; last: string }> };
  /** Perturb once and remember the noisy bytes; nothing is sent. */
  record(
    collection: Collection,
    answers: Record<string, any>,
    how: { coins: Coins; base: string; invitation?: string; row?: Row; state?: State },
  ): Entry;
  /** Note what became of a report, which must be in the state `from`, if that is given. */
  settle(batch: string, change: Partial<Entry>, from?: State): Entry;
  /** Keep the sealed form of a report that was sealed for the session `before`, unless another tab was faster. */
  seal(batch: string, before: string | undefined, sealed: Sealed): Entry;
  spent(): Spending;
}

export interface Spending {
  collections: { collection: string; title: Texts; epsilon: number; state: State }[];
  /** Without reports that are held: they have cost nothing yet. */
  total: number;
}

/** A collection was answered before on this device. */
export class AlreadyAnswered extends TacitError {
  readonly receipt: Receipt;
}

/** A collection that asks again and again, on this device; made by `Respondent.join`. */
export interface WindowedCollection {
  readonly collection: Collection;
  /** The date that decides the window. */
  today(): string;
  /** Report on the window of a day, today unless told, if this device may; call it once a day with the value. */
  tick(value: any, options?: { day?: string }): Promise<{ window: number; state: string; reason: string }>;
  /** Send reports that wait; those whose window takes none any more expire, and stay charged. */
  flush(): Promise<void>;
  /** What the account has cost this device, and the first day of the next window that it reports on, if that is known. */
  view(): Promise<AccountCosts & { next: string | null }>;
}

/** What an account has cost: epsilons as exact fractions, in the run of windows that ends today and in all. */
export interface AccountCosts {
  name: string;
  run: string;
  runCap: string;
  spent: string;
  lifetimeCap: string | null;
}

/** An account of this device, and the collections that were charged to it. */
export interface DeviceAccount extends AccountCosts {
  collector: string;
  windows: number;
  every: "day" | "week" | "month";
  collections: string[];
}

/** One person on one device. */
export class Respondent {
  constructor(options?: {
    storage?: Store;
    coins?: Coins;
    fetch?: typeof fetch;
    attempts?: number;
    sleep?: (milliseconds: number) => Promise<unknown>;
    now?: () => number;
  });
  readonly coins: Coins;
  readonly store: Ledger;
  /** Fetch a document and verify that it is the one the address names. */
  open(address: string): Promise<Collection>;
  /**
   * Perturb once, remember, send; what cannot be sent now stays pending. Reports of a shuffled collection are sealed
   * for its session, which is verified first: CannotSeal or ProtocolViolation before anything is drawn.
   */
  answer(address: string, answers: Record<string, any>, options?: Options): Promise<Receipt>;
  /** Take part in a collection that asks again and again; needs https or localhost, and Web Locks. */
  join(address: string): Promise<WindowedCollection>;
  /** What this device has spent on such collections, by account. */
  accounts(): Promise<DeviceAccount[]>;
  /** One attempt to send a report; `change` is undefined if it has to be sent again. */
  attempt(entry: Entry): Promise<{ change?: Partial<Entry>; after: number }>;
  /** Perturb once, remember and hold; nothing is sent before `release`. */
  prepare(address: string, answers: Record<string, any>, options?: Options): Promise<Entry>;
  /** Send a report that was held; its owner has agreed. */
  release(batch: string): Promise<Receipt>;
  /** Redeem an invitation for an anonymous token, which `answer` sends along; it does so by itself where there is none. */
  redeem(address: string, invitation: string): Promise<void>;
  /** Send what is pending; a sealed report whose session was aborted is sealed for the next one, and sent again. */
  flush(): Promise<Receipt[]>;
  /** The session that takes reports of a shuffled collection now, verified, with what its operators claim. */
  session(address: string, options?: Options): Promise<Session>;
  /** Whether a sealed report took part in the shuffle, from its shufflers and the transcript. */
  check(batch: string): Promise<Inclusion>;
  /** One request, without cookies, that follows no redirection; status 0 if there is no reply. */
  request(url: string, request?: RequestInit): Promise<{ status: number; bytes: Uint8Array; after: number }>;
  /** What was spent, by collection and in all. */
  ledger(): Spending;
  /** Hand over what is pending when the page goes away, and flush when the network comes back. */
  attach(page?: EventTarget): void;
  /** Hand what is pending to the browser, which sends it even after the page is gone; like every request, without cookies. Not what goes through a relay. */
  beacon(): void;
}
