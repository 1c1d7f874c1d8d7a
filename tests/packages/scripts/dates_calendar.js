const d = new Date(Date.UTC(2024, 1, 28, 22, 30));
console.log(d, d.toISOString(), d.toString(), d.toDateString(), d.toTimeString(), d.toUTCString(), d.toJSON(), +d, d.getTimezoneOffset());
console.log(d.toLocaleDateString('en-US', { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' }), d.toLocaleTimeString('de-DE'), d.toLocaleString('en-GB', { timeZone: 'Asia/Tokyo' }));
const addDays = (x, n) => new Date(x.getTime() + n * 864e5);
console.log(Array.from({ length: 4 }, (_, i) => addDays(d, i).toISOString().slice(0, 10)), Date.parse('2024-02-30'), new Date('2024-02-30T00:00'), new Date('Mar 5, 2021 10:00 PM').toISOString(), new Date(NaN), String(new Date(NaN)));
function calendar(y, m) { const first = new Date(y, m, 1).getDay(); const days = new Date(y, m + 1, 0).getDate(); const cells = [...Array(first).fill('  '), ...Array.from({ length: days }, (_, i) => String(i + 1).padStart(2))]; const out = []; while (cells.length) out.push(cells.splice(0, 7).join(' ')); return out.join('\n'); }
console.log(calendar(2024, 1)); try { new Date(NaN).toISOString(); } catch (e) { console.log(e.name, e.message); }
