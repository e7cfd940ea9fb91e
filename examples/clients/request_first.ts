// Decide for a request, then observe its round: request_first.ts URL CAMPAIGN TICKET, with the token in $TOKEN, the
// request in request.json and what is known later in round.json.
import { readFileSync } from "node:fs";

const [url, name, ticket] = process.argv.slice(2) as [string, string, string];

async function ask(path: string, content: object): Promise<{ rounds: number; decisions?: number[] }> {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${process.env.TOKEN}` };
  const signal = AbortSignal.timeout(10_000);
  const answer = await fetch(url + path, { method: "POST", headers, signal, body: JSON.stringify(content) });
  if (!answer.ok) throw new Error(await answer.text());
  return await answer.json();
}

const read = (file: string): Record<string, unknown> => JSON.parse(readFileSync(file, "utf-8"));
const decided = await ask("/decide", { name, ticket, requests: read("request.json") }); // after a timeout: once more
console.error(decided.decisions); // act on it; days may go by
console.log(JSON.stringify(await ask("/observe", { name, ticket, rounds: read("round.json") }))); // after a timeout: once more
