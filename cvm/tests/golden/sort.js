// Paused in a comparator of `sort`, of `toSorted`, and in callbacks of `replace`, `reduce` and `JSON.stringify`.
function main() {
  const list = [5, 3, 9, 1, 7].sort((a, b) => { if (a === 9) CC(`compare ${a} ${b}`); return a - b; });
  const words = ['b', 'a', 'c'].toSorted((a, b) => (CC(`words ${a}${b}`), a < b ? -1 : 1));
  const text = 'one two'.replace(/(?<first>o)(\w*)/g, (whole, first, rest, at) => `${whole}-${at}-${CC(`replace ${rest}`)}`);
  const sum = [1, 2, 3].reduce((total, n) => total + n + CC(`reduce ${n}`).length, 0);
  const json = JSON.stringify({ a: { toJSON: (key) => CC(`toJSON ${key}`) }, b: [1, , null] }, null, 1);
  return [list, words, text, sum, json];
}
