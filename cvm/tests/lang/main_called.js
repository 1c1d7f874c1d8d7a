// The top level calls `main` by itself, later than its end: in a function that waits first.
async function prepare() { await null; return CC("prepared?"); }
async function start() {
  const text = await prepare();
  const result = await main(text);
  console.log("main gave", result);
}
async function main(text) {
  console.log("main", text);
  return [text, await CC("in main")];
}
start();
