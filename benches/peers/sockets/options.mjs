// The options of the run.

import { parseArgs } from "node:util";

const NUMBERS = {
  connections: [10_000, "idle connections of the memory; fewer if the system allows fewer open files"],
  users: [2000, "connections that messages are delivered to"],
  seconds: [10, "of each rate"],
  rounds: [3, "of the deliveries, all servers in turn; figures are medians"],
  "kill-users": [500, "users of the kill -9, of whom half are away"],
  messages: [5000, "of the kill -9; it comes when half of them are accepted"],
  "kill-rate": [1000, "messages a second until then"],
};

export function options(words, peers) {
  const [first, ...rest] = words;
  const { values } = parseArgs({
    args: first === "peers" ? rest : words,
    options: {
      ...Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, { type: "string" }])),
      rates: { type: "string", default: "500,2000" },
      peers: { type: "string", default: peers.join(",") },
      keep: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    for (const [name, [value, meaning]] of Object.entries(NUMBERS)) console.log(`--${name} ${value}: ${meaning}`);
    console.log("--rates 500,2000: messages a second\n--keep: write the page to benches/load/results");
    console.log(`--peers ${peers.join(",")}: some of these`);
    return null;
  }
  const number = (name, text) => {
    if (!/^\d+$/.test(text) || +text < 1) throw new Error(`--${name} needs a number above 0, not ${text}`);
    return +text;
  };
  const chosen = { keep: values.keep, rates: values.rates.split(",").map((rate) => number("rates", rate)), peers: values.peers.split(",") };
  for (const [name, [value]] of Object.entries(NUMBERS)) {
    const field = name.replaceAll(/-(\w)/g, (_, letter) => letter.toUpperCase());
    chosen[field] = values[name] === undefined ? value : number(name, values[name]);
  }
  const unknown = chosen.peers.find((name) => !peers.includes(name));
  if (unknown) throw new Error(`there is no peer ${unknown}; they are ${peers.join(", ")}`);
  return chosen;
}
