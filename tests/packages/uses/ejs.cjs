const ejs = require('ejs');
const fs = require('fs');
console.log(ejs.render('<% for (const u of users) { %><li><%= u %></li>\n<% } -%>\n<%- raw %> <%# no %><%% %>', { users: ['a', '<b>'], raw: '<i>' }));
fs.writeFileSync('part.ejs', '[<%= v %>]'); console.log(ejs.render('x <%- include("part", { v: 1 }) %>', {}, { filename: 'main.ejs' }));
ejs.renderFile('part.ejs', { v: 2 }, (e, out) => { console.log(e, out); fs.rmSync('part.ejs'); });
try { ejs.render('a\n<%= nope %>\n', {}); } catch (e) { console.log(e.name, e.message); }
console.log(ejs.compile('<%= await p %>', { async: true })({ p: Promise.resolve(5) }) instanceof Promise);
