const text = `It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness — naïve café!`;
const counts = new Map();
for (const [word] of text.toLowerCase().matchAll(/[\p{L}']+/gu)) counts.set(word, (counts.get(word) ?? 0) + 1);
console.log(counts); console.log([...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).slice(0, 5));
console.log(text.replace(/\b(\w)(\w*)/g, (m, a, b) => a.toUpperCase() + b), text.split(/,\s*/), text.normalize('NFD').length, [...'👨‍👩‍👧é'].length, text.at(-1), text.indexOf('age', 70));
