// Decide and observe once: client.ts URL CAMPAIGN, with the token in $TOKEN and the round in round.json.
import { readFileSync } from "node:fs";

const [url, name] = process.argv.slice(2) as [string, string];

async function ask(path: string, content: object): Promise<{ rounds: number; decisions?: number[] }> {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${process.env.TOKEN}` };
  const signal = AbortSignal.timeout(10_000);
  const answer = await fetch(url + path, { method: "POST", headers, signal, body: JSON.stringify(content) });
  if (!answer.ok) throw new Error(await answer.text());
  return await answer.json();
}

const decided = await ask("/decide", { name });
const round: Record<string, unknown> = JSON.parse(readFileSync("round.json", "utf-8"));
console.log(JSON.stringify(await ask("/observe", { name, rounds: round, at: decided.rounds }))); // after a timeout: once more
