// Three reviewers have a task each at the same time; two of them decide, and the deadline ends it without them.
//
//   vm-system program start examples/durable/reviewers.ts --name publish
//   vm-system task list --execution publish
//   vm-system task submit TASK '{"ok": true}'
const vote = {
  type: "object",
  required: ["ok"],
  properties: { ok: { type: "boolean" }, reason: { type: "string" } },
};

type Vote = { ok: boolean; reason?: string };

const deadline = Number(args[0] ?? 2 * 24 * 3600 * 1000);
const reviewers = ["ann", "ben", "eva"];

export async function main() {
  const votes: Promise<Vote>[] = reviewers.map((who) => CC.async(`${who}: may we publish?`, { schema: vote }));
  let yes = 0;
  let no = 0;
  const decided = new Promise<string>((resolve) => {
    votes.forEach((vote, index) =>
      vote.then(({ ok, reason }) => {
        console.log(`${reviewers[index]}: ${ok ? "yes" : `no, ${reason ?? "without a reason"}`}`);
        if (ok ? ++yes === 2 : ++no === 2) resolve(ok ? "published" : "rejected");
      }),
    );
  });
  const late = sleep(deadline).then(() => "not decided in time");
  return { outcome: await Promise.race([decided, late]), yes, no };
}
