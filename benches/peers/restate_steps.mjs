// Steps of a durable workflow in Restate: resolve an awakeable, wait for the next one.
//
// Usage: node restate_steps.mjs STEPS FOLDER (empty, for the server's data) MODULES (a folder with node_modules in it).
// Prints one line per step: microseconds.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createServer } from "node:net";

const [steps, folder, modules] = process.argv.slice(2);

// The SDK uses this function, which older versions of Node do not have.
Promise.withResolvers ??= function () {
  let resolve, reject;
  const promise = new Promise((fulfil, refuse) => ([resolve, reject] = [fulfil, refuse]));
  return { promise, resolve, reject };
};

const restate = createRequire(`${modules}/`)("@restatedev/restate-sdk");

const freePort = () =>
  new Promise((resolve, reject) => {
    const server = createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

const [ingress, admin, node, service] = [await freePort(), await freePort(), await freePort(), await freePort()];
const server = spawn(
  `${modules}/node_modules/.bin/restate-server`,
  ["--no-logo", "--base-dir", folder, "--node-name", "peer", "--listen-mode", "tcp"],
  {
    // A separate process group: the command is a script that starts the server.
    detached: true,
    stdio: "ignore",
    env: {
      ...process.env,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
    },
  },
);
process.on("exit", () => process.kill(-server.pid, "SIGKILL"));
server.on("exit", () => process.exit(1)).on("error", () => process.exit(1));

let asked;
const nextQuestion = () => new Promise((resolve) => (asked = resolve));

const asker = restate.workflow({
  name: "asker",
  handlers: {
    run: async (ctx, questions) => {
      for (let question = 0; question < questions; question++) {
        const { id, promise } = ctx.awakeable();
        await ctx.run("ask", () => asked(id));
        await promise;
      }
    },
  },
});

const post = async (url, body) => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
};

const deadline = Date.now() + 30_000;
const isUp = async (url) => (await fetch(url).catch(() => undefined))?.ok;
while (!(await isUp(`http://127.0.0.1:${admin}/health`))) {
  if (Date.now() > deadline) throw new Error("the server did not come up");
  await new Promise((resolve) => setTimeout(resolve, 100));
}
// Messages of the SDK are written to standard error, apart from the figures.
console.info = console.warn = console.error;
await restate.serve({ services: [asker], port: service });
await post(`http://127.0.0.1:${admin}/deployments`, { uri: `http://127.0.0.1:${service}` });
const first = nextQuestion();
await post(`http://127.0.0.1:${ingress}/asker/one/run/send`, Number(steps) + 1);
let question = await first;
const answer = "y".repeat(1024);
for (let step = 0; step < Number(steps); step++) {
  const next = nextQuestion();
  const begin = performance.now();
  await post(`http://127.0.0.1:${ingress}/restate/awakeables/${question}/resolve`, answer);
  question = await next;
  process.stdout.write(`${(performance.now() - begin) * 1e3}\n`);
}
process.exit(0);
