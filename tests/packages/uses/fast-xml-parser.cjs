const { XMLParser, XMLBuilder, XMLValidator } = require('fast-xml-parser');
const xml = '<?xml version="1.0"?><root a="1"><item id="x">one &amp; two</item><item>2.50</item><e/><c><![CDATA[<raw>]]></c></root>';
const parser = new XMLParser({ ignoreAttributes: false, attributeNamePrefix: '@', cdataPropName: '#cdata' });
const v = parser.parse(xml);
console.log(v, JSON.stringify(new XMLParser({ preserveOrder: true }).parse(xml)), XMLValidator.validate('<a><b></a>'));
console.log(new XMLBuilder({ ignoreAttributes: false, attributeNamePrefix: '@', format: true }).build({ r: { '@k': 'v', i: [1, 'a<b'], n: { m: '' } } }));
