// What main's promise is rejected with is how the program ends.
async function deep() { await CC("in an async function"); throw new RangeError("from main"); }
async function main() { await deep(); }
