// Converts a nested JSON document: stock by item, with its shelves, and items by tag.
// vm-system run examples/transform.js
const inventory = require('./data/inventory.json');

const stock = {};
const tags = {};
for (const { id, items } of inventory.shelves) {
  for (const { sku, count, tags: marks } of items) {
    stock[sku] ??= { count: 0, shelves: [] };
    stock[sku].count += count;
    stock[sku].shelves.push(id);
    for (const tag of marks) (tags[tag] ??= new Set()).add(sku);
  }
}

const result = {
  warehouse: inventory.warehouse,
  items: Object.entries(stock)
    .map(([sku, entry]) => ({ sku, ...entry }))
    .sort((a, b) => a.sku.localeCompare(b.sku)),
  tags: Object.fromEntries(Object.keys(tags).sort().map((tag) => [tag, [...tags[tag]].sort()])),
  empty: inventory.shelves.filter(({ items }) => items.length === 0).map(({ id }) => id),
};
console.log(JSON.stringify(result, null, 2));
result;
