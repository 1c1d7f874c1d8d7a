const figlet = require('figlet');
console.log(figlet.textSync('Hello', { font: 'Standard' }), figlet.textSync('ab c', { font: 'Small', horizontalLayout: 'fitted', width: 20, whitespaceBreak: true }));
figlet('Hi', (e, t) => console.log(e, t)); figlet.metadata('Standard', (e, o, h) => console.log(e, o.height, h.length)); console.log(figlet.fontsSync().length > 100);
