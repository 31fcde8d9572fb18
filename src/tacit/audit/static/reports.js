/**
 * Reports of the JavaScript client as lines of hexadecimal digits, for audits from outside. Runs in Node (with arguments:
 * the client's module, a spec, a value, how many) and in a browser, where `lines` is called.
 */

/** @param {Uint8Array} bytes @returns {string} */
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * @param {any} client the module of the client
 * @param {string} spec JSON of the mechanism
 * @param {string} value JSON of the value
 * @param {number} runs
 * @returns {Promise<string>} a report per line
 */
export async function lines(client, spec, value, runs) {
  const device = await client.loadDevice(JSON.parse(spec));
  const [coins, answer] = [new client.SystemCoins(), JSON.parse(value)];
  let text = "";
  for (let i = 0; i < runs; i += 1) text += `${hex(device.privatizeOne(answer, coins))}\n`;
  return text;
}

if (globalThis.process?.argv[2]?.startsWith("file:")) {
  const [, , url, spec, value, runs] = process.argv;
  // Node 18 has no global entropy source; browsers and later versions do.
  if (!globalThis.crypto) globalThis.crypto = (await import("node:crypto")).webcrypto;
  process.stdout.write(await lines(await import(url), spec, value, Number(runs)));
}
