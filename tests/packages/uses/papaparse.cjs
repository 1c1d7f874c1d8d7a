const Papa = require('papaparse');
console.log(Papa.parse('a,b,c\n1,"x, y",true\n2,,\n', { header: true, dynamicTyping: true, skipEmptyLines: true }), Papa.parse('a\tb\n1\t2').meta, Papa.parse('a,b\n"open', { header: true }).errors);
console.log(Papa.unparse([{ a: 1, b: 'x "y", z' }, { a: null, b: new Date(0) }]), Papa.unparse({ fields: ['q'], data: [['=1+1']] }, { escapeFormulae: true }));
Papa.parse('n\n1\n2\n3', { header: true, step: (r, p) => { console.log('step', r.data); if (r.data.n === '2') p.abort(); }, complete: (r) => console.log('complete', r.meta.aborted) });
const stream = Papa.parse(Papa.NODE_STREAM_INPUT, { header: true }); stream.on('data', (r) => console.log('data', r)); stream.on('end', () => console.log('end')); stream.write('k,v\n1,2\n'); stream.end('3,4');
