const cheerio = require('cheerio');
const $ = cheerio.load('<ul id="fruits"><li class="apple">Apple</li><li class="orange" data-n="2">Orange &amp; co</li></ul><a href="/x?y=1&z=2">l</a>');
console.log($('.apple', '#fruits').text(), $('li').map((i, e) => $(e).attr('class')).get(), $('li[data-n]').data('n'), $('a').prop('href'));
$('ul').append('<li>Plum</li>').find('li:first-child').addClass('first').attr('title', '"q"'); $('.orange').remove();
console.log($.html(), $('li').length, $('ul').children().eq(1).prev().is('.apple'), $('ul > li:nth-of-type(2)').html(), $('li').toArray().map((e) => e.name), cheerio.load('<a><b/></a>', { xml: true }).xml());
console.log($.extract({ names: ['li'], link: { selector: 'a', value: 'href' } }));
