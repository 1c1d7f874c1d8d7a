const csv = `date,product,qty,price
2024-01-05,Widget,3,9.99
2024-01-06,"Gadget, large",1,24.50
2024-02-01,Widget,10,9.49`;
function parseLine(line) {
  const out = []; let cell = ''; let quoted = false;
  for (const ch of line) { if (ch === '"') quoted = !quoted; else if (ch === ',' && !quoted) { out.push(cell); cell = ''; } else cell += ch; }
  return [...out, cell];
}
const [head, ...rows] = csv.split('\n').map(parseLine);
const records = rows.map((r) => Object.fromEntries(head.map((h, i) => [h, r[i]])));
console.table(records);
const byMonth = records.reduce((acc, r) => { const m = r.date.slice(0, 7); acc[m] = (acc[m] ?? 0) + r.qty * r.price; return acc; }, {});
for (const [month, total] of Object.entries(byMonth)) console.log(`${month}: ${total.toFixed(2).padStart(10)}`);
console.log(new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }).format(Object.values(byMonth).reduce((a, b) => a + b)));
