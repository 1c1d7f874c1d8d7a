const xml2js = require('xml2js');
xml2js.parseString('<root a="1"><item id="x">one</item><item>two<!-- c --></item><ns:e xmlns:ns="u"/></root>', (err, r) => console.log(err, JSON.stringify(r)));
xml2js.parseStringPromise('<a><b>1</b></a>', { explicitArray: false, valueProcessors: [xml2js.processors.parseNumbers] }).then((r) => console.log(r));
xml2js.parseStringPromise('<a><b></a>').catch((e) => console.log(e.message));
console.log(new xml2js.Builder({ headless: true }).buildObject({ root: { $: { id: 'my' }, item: ['a', 'b & c'], x: { _: 'text', $: { y: 1 } } } }));
