/** What the bundle for pages exports: the client, documents and domains; kinds are loaded when a document needs them. */

export { Respondent } from "./client/client.js";
export { SystemCoins } from "./numbers/coins.js";
export { Collection } from "./documents/document.js";
export { InvalidSpec, InvalidValue, TacitError } from "./errors.js";
export { AlreadyAnswered } from "./client/ledger.js";
export { loadDevice } from "./load.js";
export { domainOf } from "./domains/product.js";
