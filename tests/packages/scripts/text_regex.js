const log = '2024-01-02T03:04:05Z [ERROR] db: connection lost (code=503)\n2024-01-02T03:04:06Z [INFO] web: GET /index 200';
const re = /^(?<time>\S+) \[(?<level>\w+)\] (?<src>\w+): (?<msg>.*)$/gm;
for (const m of log.matchAll(re)) console.log(m.index, { ...m.groups }, m.groups);
console.log(log.match(/\d{3}/g), /(?<=code=)\d+/.exec(log), 'aBc'.replace(/[A-Z]/, (c) => `_${c.toLowerCase()}`), 'x1y22'.split(/(\d+)/), /a.c/s.test('a\nc'), '2020-05'.replace(/(?<y>\d+)-(?<m>\d+)/, '$<m>/$<y>'), /^\p{Lu}/u.test('É'), 'aaa'.lastIndexOf('a'), /(a)|(b)/d.exec('b').indices, /[\p{L}--[a-z]]/v.test('a'));
const sticky = /foo/y; sticky.lastIndex = 3; console.log(sticky.test('barfoo'), sticky.lastIndex, sticky, new RegExp('[/]', 'gi').source, RegExp('a/b').toString()); try { new RegExp('('); } catch (e) { console.log(e.name); }
