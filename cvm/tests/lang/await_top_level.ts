// `await` at the top level, before and around `main`.
const first: string = await Promise.resolve("first");
for await (const part of [1, Promise.resolve(2)]) console.log(part);
let seen = 0;
async function main(): Promise<string> {
  seen++;
  return first + ", " + (await CC("q"));
}
console.log(await main(), seen);
