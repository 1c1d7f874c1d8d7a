// Creates orders.csv: the same bytes on every machine. The sandbox cannot write files, so run it with Node:
//   node examples/data/make-orders.js > examples/data/orders.csv
const ROWS = 52000;
const countries = ['AT', 'BR', 'CA', 'DE', 'ES', 'FR', 'GB', 'IN', 'JP', 'KE', 'MX', 'NO', 'PL', 'US', 'ZA'];
const products = ['anvil', 'bolt', 'cable', 'drill', 'engine', 'filter', 'gasket', 'hinge'];

// mulberry32: small, seeded, good enough for a sample.
let state = 20240229;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}

const lines = ['id,date,country,product,quantity,cents'];
for (let id = 1; id <= ROWS; id++) {
  const day = new Date(Date.UTC(2024, 0, 1 + Math.floor(((id - 1) / ROWS) * 366))).toISOString().slice(0, 10);
  const country = countries[Math.floor(random() ** 1.7 * countries.length)];
  const product = products[Math.floor(random() * products.length)];
  const quantity = 1 + Math.floor(random() * 9);
  const cents = 199 + Math.floor(random() * 50000);
  lines.push([id, day, country, product, quantity, cents].join(','));
}
process.stdout.write(lines.join('\n') + '\n');
