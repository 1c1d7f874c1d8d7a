// Aggregates the 52 000 orders of data/orders.csv: totals by country and month, best products, the median order.
// vm-system run examples/report.js
// vm-system run examples/report.js DE
// vm-system exec run-file SESSION examples/report.js --args '{"country":"DE"}'
const fs = require('fs');

const only = args.country ?? process.argv[2];
const text = fs.readFileSync(`${__dirname}/data/orders.csv`, 'utf8');
const lines = text.trimEnd().split('\n');
const columns = lines[0].split(',');

const byCountry = new Map();
const byMonth = new Map();
const byProduct = new Map();
const totals = [];
let skipped = 0;

const add = (map, key, cents) => {
  const entry = map.get(key) ?? { orders: 0, cents: 0 };
  entry.orders += 1;
  entry.cents += cents;
  map.set(key, entry);
};

for (let i = 1; i < lines.length; i++) {
  const [, date, country, product, quantity, cents] = lines[i].split(',');
  if (only !== undefined && country !== only) {
    skipped += 1;
    continue;
  }
  const total = Number(quantity) * Number(cents);
  if (!Number.isSafeInteger(total)) throw new Error(`line ${i + 1} is no order: ${lines[i]}`);
  add(byCountry, country, total);
  add(byMonth, date.slice(0, 7), total);
  add(byProduct, product, total);
  totals.push(total);
}
if (totals.length === 0) throw new Error(`no orders${only === undefined ? '' : ` from ${only}`}`);

const money = (cents) => (cents / 100).toFixed(2).replace(/\B(?=(\d{3})+(?!\d))/g, ' ');
const sorted = (map) => [...map].sort(([, a], [, b]) => b.cents - a.cents);
const sum = totals.reduce((all, total) => all + total, 0);
totals.sort((a, b) => a - b);

console.log(`${columns.length} columns, ${totals.length} orders${skipped ? `, ${skipped} skipped` : ''}`);
console.log('%s in all, median order %s', money(sum), money(totals[totals.length >> 1]));
console.table(
  sorted(byCountry).slice(0, 5).map(([country, { orders, cents }]) => ({ country, orders, total: money(cents) })),
);
console.log('months', Object.fromEntries([...byMonth].map(([month, { orders }]) => [month, orders])));
console.log('best product:', sorted(byProduct)[0][0]);

({ orders: totals.length, cents: sum, countries: byCountry.size, best: sorted(byProduct)[0][0] });
