/** What the bundle for pages exports: the client, documents and domains; kinds are loaded when a document needs them. */

export { Respondent } from "./client.js";
export { SystemCoins } from "./coins.js";
export { Collection } from "./document.js";
export { InvalidSpec, InvalidValue, TacitError } from "./errors.js";
export { AlreadyAnswered } from "./ledger.js";
export { loadDevice } from "./load.js";
export { domainOf } from "./product.js";
