// The task of one expense above its limit.
export type Review = { what: string; approved: boolean; reason?: string };

const schema = {
  type: "object",
  required: ["approved"],
  properties: { approved: { type: "boolean" }, reason: { type: "string" } },
};

let number = 0;

export function review(what: string, amount: number, limit: number): Review {
  number += 1;
  const answer = CC(`Exception ${number}: ${what} for ${amount} (limit ${limit})?`, { schema });
  return { what, ...answer };
}
