// A migration in steps. A failed step is skipped, or ends the migration; a decision that turns out to be wrong can be
// rewound:
//   vm-system program start examples/durable/migration.ts --name migration
//   vm-system program checkpoints migration
//   vm-system program rewind migration CHECKPOINT

type Outcome = { done: boolean; note?: string };

const outcome = {
  type: "object",
  required: ["done"],
  properties: { done: { type: "boolean" }, note: { type: "string" } },
};

const plan = [
  "copy the tables to the new cluster",
  "let the application write to both",
  "compare both for a day",
  "let the application read from the new cluster",
  "switch the old cluster off",
];

function main() {
  const done: string[] = [];
  for (const [i, step] of plan.entries()) {
    const { done: ok, note }: Outcome = CC(`Step ${i + 1} of ${plan.length}: ${step}`, { schema: outcome });
    if (ok) {
      done.push(step);
      console.log(`${step}: done`);
      continue;
    }
    console.warn(`${step}: ${note ?? "failed"}`);
    const next = CC(`"${step}" failed. Go on without it?`, { schema: { type: "string", enum: ["skip", "stop"] } });
    if (next === "stop") return { finished: false, done };
  }
  return { finished: true, done };
}
