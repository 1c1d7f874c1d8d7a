// A purchase that a user has to approve. Start it with
//   vm-system program start examples/durable/approval.ts --name purchase -- 1200
// and answer with `vm-system task submit purchase ANSWER`, today or in a month; or give all answers at the start:
// `--answers examples/durable/approval.answers.json` (before `--`).

type Decision = { approved: boolean; reason?: string };

const decision = {
  type: "object",
  required: ["approved"],
  properties: { approved: { type: "boolean" }, reason: { type: "string" } },
};

function review(who: string, amount: number): Decision {
  return CC(`${who}: may we spend ${amount}? Answer {"approved": true} or {"approved": false, "reason": "…"}`, {
    schema: decision,
    retries: 3, // four attempts
  });
}

function main() {
  const amount = Number(args[0] ?? 100);
  const reviewers = amount > 1000 ? ["team lead", "finance"] : ["team lead"];
  for (const who of reviewers) {
    const answer = review(who, amount);
    console.log(`${who}: ${answer.approved ? "yes" : "no"}`);
    if (!answer.approved) {
      return { amount, bought: false, reason: answer.reason ?? "none given" };
    }
  }
  const supplier = CC("From whom do we buy?");
  console.log(`ordered from ${supplier}`);
  return { amount, bought: true, supplier };
}
