const Table = require('cli-table3');
const t = new Table({ head: ['Name', 'Größe', '日本'], colWidths: [10, 12, 8], style: { head: [], border: [] }, wordWrap: true, colAligns: ['left', 'right'] });
t.push(['a', 'some long text here', '漢字'], [{ colSpan: 2, content: 'wide', hAlign: 'center' }, 'x'], [{ rowSpan: 2, content: 'tall' }, 1, 2], [3, 4]);
console.log(t.toString());
const v = new Table({ chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' }, style: { compact: true, head: [], border: [] } }); v.push({ k: 'v' }, { k2: ['x', 'y'] }); console.log(v.toString());
