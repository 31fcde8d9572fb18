/** What the bundle for pages exports: every kind behind `deviceOf`, every domain behind `domainOf`, and the client. */

export { Respondent } from "./client.js";
export { SystemCoins } from "./coins.js";
export { Collection } from "./document.js";
export { InvalidSpec, InvalidValue, TacitError } from "./errors.js";
export { deviceOf } from "./kinds.js";
export { AlreadyAnswered } from "./ledger.js";
export { domainOf } from "./product.js";
