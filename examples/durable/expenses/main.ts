// Expenses by a policy, in three files:
//   vm-system program start examples/durable/expenses/main.ts --name expenses -- taxi=40 hotel=310 dinner=95
//   vm-system task submit expenses '{"approved": true}'
//   vm-system program state expenses
import { review, type Review } from "./review.ts";
import policy from "./policy.json" with { type: "json" };

type Expense = { what: string; amount: number };

function parse(text: string): Expense {
  const [what = "", amount = ""] = text.split("=");
  return { what, amount: Number(amount) };
}

export function main() {
  const reviews: Review[] = [];
  let paid = 0;
  for (const { what, amount } of args.map(parse)) {
    const limit = (policy.limits as Record<string, number>)[what] ?? policy.otherwise;
    const result = amount <= limit ? { what, approved: true } : review(what, amount, limit);
    reviews.push(result);
    if (result.approved) paid += amount;
  }
  console.log(`${paid} ${policy.currency} are paid`);
  return { paid, refused: reviews.filter((one) => !one.approved).map((one) => one.what) };
}
