// Paused in a callback of `map` inside a callback of `forEach`, with closures over a loop's variable.
const makers = [];
for (let i = 0; i < 3; i++) makers.push((more) => (i += more));
const seen = [];
function main() {
  ['a', 'b'].forEach((outer) => {
    const doubled = [1, 2].map((item, index, all) => `${outer}${item}${CC(`map ${outer}${item}`)}${makers[index](item)}${all.length}`);
    seen.push(...doubled);
  });
  return [seen, makers.map((make) => make(0))];
}
