#!/usr/bin/env python3
"""What jinja2 writes of small templates, in the environment that transformers makes: tests/golden/jinja.json.

Two lists: templates that we must write alike, or refuse where jinja2 fails, too; and templates with what we have not,
which we must refuse by name. Run with the environment of scripts/oracle-env:

  /var/tmp/teratron-oracle/bin/python tests/golden/make_jinja_golden.py
"""
import copy
import json
import re
from pathlib import Path

from transformers.utils import chat_template_utils

VARIABLES = {
    "messages": [{"role": "user", "content": "héllo 🙂"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
    "tools": None,
    "bos_token": "<s>",
}

# A line each.
LINES = r'''
{{ 1 }} {{ 1.0 }} {{ 1e20 }} {{ 1.5e-7 }} {{ 123456789.123 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // -2 }} {{ 7.5 % -2 }}
{{ 4503599627370497.0 // 1 }} {{ 9007199254740991.0 // 1 }} {{ -9007199254740991.0 // 1 }} {{ 0.3 // 0.1 }} {{ 1.0 // -0.1 }} {{ 0.0 // -3 }} {{ -1 // 1e300 }} {{ 1e300 // 7 }} {{ 1e300 % 7 }} {{ -7.5 // 2 }} {{ -0.5 // 5 }}
{{ range(1, stop='a') }}
{{ range(1, stop=3) | list }}
{{ 0.0 ** -1 }}
{{ 0 ** -1 }}
{{ 1e200 ** 2 }}
{{ 2.0 ** 0.5 }} {{ (-2.0) ** 3 }} {{ (-8) ** -1 }} {{ 0.0 ** 0 }}
{{ {'a': 1, 'b': [2.0]} == {'b': [2], 'a': 1.0} }}
{{ [1, 'a', "it's", 'q"', None, True, 1.5, {'a': [1]}, (1,), (1, 2), ()] }}
{{ '\u00a0\u3000é\n\t\x00\u200b🙂\\' ~ ['\u00a0\u3000é\n\t\x00\u200b🙂\\'] }}
{{ 'abc'[1] }}{{ 'abc'[-1] }}{{ 'abc'[::-1] }}{{ 'abc'[5] }}{{ 'abc'[1:] }}{{ 'héllo'[1:3] }}{{ [1,2,3][::2] }}{{ [1,2,3][5:] }}{{ [1,2,3][-5:2] }}{{ (1,2,3)[:-1] }}
{%+ if true %} g{%+ endif %}
{% for i in range(3) %}{{ loop.index }}/{{ loop.length }}{{ loop.first }}{{ loop.last }}{{ loop.revindex }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.changed(i // 2) }} {% endfor %}
{% for i in [] %}x{% else %}empty{% endfor %}
{% for i in range(10) if i is odd %}{{ i }}{{ loop.index }}{% if i == 7 %}{% break %}{% endif %}{% if i == 3 %}{% continue %}{% endif %},{% endfor %}
{% set ns = namespace(n=0) %}{% for x in [1,2,3] if ns.n < 2 %}{% set ns.n = ns.n + 1 %}{{ x }}{% endfor %}
{% set ns = namespace(n=0) %}{% for x in [1,2,3,4] if ns.n < 2 %}{{ loop.nextitem }}{{ loop.previtem }}{% set ns.n = ns.n + 1 %}{{ x }}{{ loop.last }}{% endfor %}
{% set ns = namespace(n=0) %}{% for x in [1,2,3,4] if ns.n < 2 %}{{ loop.revindex }}{% set ns.n = 5 %}{{ x }}{{ loop.last }}{% endfor %}
{% set ns = namespace(l=0) %}{% for x in [1,2,3] if x != 2 %}{% set ns.l = loop %}{% break %}{% endfor %}{{ ns.l.last }}{{ ns.l.length }}{{ ns.l.nextitem }}
{% for y in [7,8] %}{% for x in [1,2] if loop.index == 1 %}{{ x }}{{ loop.length }}{% endfor %}{% endfor %}
{% for x in [1,2,'a'] if x < 2 %}{{ x }}{% break %}{% endfor %}
{% for x in [1,2] %}{% continue %}{% else %}none{% endfor %}{% for x in [1,2] %}{{ x }}{% break %}{% else %}none{% endfor %}
{% for x in [1,2] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% else %}none{% endfor %}{% for x in [1] if x == 2 %}{% else %}none{% endfor %}
{% set l = [1,2,3] | map('string') %}{% for x in l %}{{ x }}{% break %}{% endfor %}{{ l | list }}{% set l = [1,2,3] | select('odd') %}{% for x in l %}{{ x }}{{ loop.last }}{% break %}{% endfor %}{{ l | list }}
{% set l = [1,2,3] | map('string') %}{{ '2' in l }}{{ l | list }}{{ '2' in l }}{{ 3 in [1,2] }}
{% set d = {'a': 1} %}{{ d[1:] }}
{% set none_such = none %}{{ none_such[1:] }}
{{ ([1] | map('string'))[:1] }}
{{ true | round }}{{ false | round(1) }}
{{ 1 | indent }}
{{ 'a\nb' | indent(-3) }}{{ [1] | tojson(indent=-1) }}{{ 'a\r\n\nb\u2028c\n' | indent(2) }}|{{ 'a\n\nb' | indent('> ', true, true) }}{{ '' | indent(2, true) }}|
{{ 'a\r\n\nb\u2028c\n'.splitlines() }}{{ 'a\r\n\nb\u2028c\n'.splitlines(true) }}{{ 'aaaa'.count('aa') }}{{ 'aaa'.count('a') }}
{{ '+-5' | int }} {{ '+-5' | float }} {{ '+5' | int }} {{ ' +1.5 ' | float }} {{ '++5' | int(7) }} {{ '-+5' | float(7) }} {{ '+' | int }} {{ '+-inf' | float }} {{ '--5' | int }}
{% set l = [1, 2] | map('string') | reverse %}{{ l }}{{ l | length }}{{ [1, 2] | reverse | list }}{{ 'aé🙂' | reverse }}{{ ('<' | safe | reverse) ~ '' }}{{ ('<' | safe | reverse) + '<' }}{{ nothing | reverse | list }}{{ {'a': 1, 'b': 2}.keys() | reverse | list }}
{{ “a” }}
{{ a→ }}
{{ a² }}
{{ {'é_1': 1}.é_1 }}{{ {'日本': 2}.日本 }}{% set ǅ٣ = 3 %}{{ ǅ٣ }}{% set क्षि = 4 %}{{ क्षि }}
{{ ٣ }}
{% set d = {'a': 1, 'b': 2} %}{% set e = {'b': 2, 'a': 1} %}{{ d.keys() == e.keys() }}{{ d.items() == e.items() }}{{ d.values() == d.values() }}{{ d.keys() == {'a': 3}.keys() }}{{ d.keys() == d.items() }}{{ d.values() == d.keys() }}{{ {('a', 1): 2}.keys() == {'a': 1}.items() }}{{ d.items() == {'a': 1, 'b': 3}.items() }}{{ d.keys() == ['a', 'b'] }}{{ d.keys() != e.keys() }}{% set v = d.values() %}{{ v == v }}
{% set recursive = [1, 2] %}{{ recursive }}{{ (recursive) }}{{ recursive, 3 }}{% if recursive %}y{% endif %}{% for x in (recursive) if recursive %}{{ x }}{% endfor %}{{ [recursive[0], recursive.1] }}{% set x = recursive %}{{ x }}
{% set recursive = [1, 2] %}{% for x in recursive %}{{ x }}{% endfor %}{% for x in 3, recursive %}{{ x }}{% endfor %}
{{ none | indent(2) }}
{{ nothing | indent }}
{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(a=1) %}{% for i in [1,2] %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}
{% if true %}{% set y = 5 %}{% endif %}{{ y }}
{% macro m(a, b='d', c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=3, a=2) }}{{ m() }}
{% macro w() %}<{{ caller('z') }}>{% endmacro %}{% call(v) w() %}in {{ v }}{% endcall %}
{% for i in range(2) %}{% macro l() %}L{{ i }}{{ loop.index }}{% endmacro %}{{ l() }}{% endfor %}
{% for i in range(4) %}{% set x %}a{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endset %}{{ x }};{% endfor %}{{ x is defined }}
{% for i in range(4) %}{% filter upper %}a{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfilter %};{% endfor %}
{% for i in [1, 2] %}{% continue %}{% else %}none came to its end{% endfor %}|{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}{% else %}no{% endfor %}|{% for i in [1] %}{% break %}{% else %}yes{% endfor %}
{% for i in [1, 2] %}{{ i }}{% for j in [] %}{% else %}e{% if i == 1 %}{% continue %}{% endif %}f{% endfor %}g{% endfor %}
{% for j in [] %}{% else %}{% break %}{% endfor %}
{{ [(1, 'a'), (1, 'a')] | unique | list }}{{ [(1, (2,)), (1, (2,))] | unique | list | length }}
{{ [(1, [2])] | unique | list }}
{{ (1, {}) in {} }}
{{ ['a'] | indent }}
{% set v = 5 %}{{ v[1:] }}
{% set v = none %}{{ v[:1] }}
{% set v = {'a': 1} %}{{ v[:1] }}
{{ true | round(1) }} {{ false | round }} {{ true | round(method='ceil') }} {{ true | abs }} {{ true | int }} {{ true | float }} {{ -true }} {{ true + true }} {{ [true, 2] | sum }} {{ [3, true] | min }}
{{ 1 | indent }}
{{ undefined_thing | indent }}
{% set b %}block {{ 1 }}{% endset %}{{ b | upper }}{% set c | upper %}low{% endset %}{{ c }}
{% filter upper | replace('A', 'o') %}banana{% endfilter %}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}
{{ undefined_thing }}{{ undefined_thing is defined }}{{ undefined_thing | default('D') }}{{ '' | default('E', true) }}{{ undefined_thing or 'or' }}{{ not undefined_thing }}
{{ undefined_thing.x }}
{{ messages[99] }}{{ messages[99].x }}
{{ messages[0].nothing }}{{ messages[0].nothing is defined }}{{ messages[0]['nothing'] }}
{{ 'a' if false }}{{ 'a' if false else 'b' }}{{ 1 if 0 else 2 if 0 else 3 }}
{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 1 == 1.0 }}{{ 'a' in 'abc' }}{{ 'a' not in ['a'] }}{{ 1 in {1: 2} }}{{ not 1 in [2] }}
{{ 'a' 'b' }}{{ 'a' ~ 1 ~ none ~ true }}{{ 'a' * 3 }}{{ [1] * 2 }}{{ [1] + [2] }}{{ (1,) + (2,) }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ none.x }}{{ none.x.y }}
{{ messages | map(attribute='role') | list }}{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ messages | map(attribute='nope', default='d') | join(',') }}
{{ (messages | selectattr('role', 'eq', 'none_such')) is defined }}{% if messages | selectattr('role', 'eq', 'none_such') %}truthy{% endif %}
{{ messages | selectattr('role') | length }}
{{ messages | rejectattr('role', 'in', ['user']) | map(attribute='role') | join('-') }}
{{ ['b', 'A', 'c'] | sort }}{{ ['b', 'A', 'c'] | sort(true, true) }}{{ {'b': 1, 'a': 2} | dictsort }}{{ {'b': 1, 'a': 2} | dictsort(by='value') }}{{ ['a','A','b'] | unique | list }}{{ [3,1,2] | min }}{{ [3,1] | max }}{{ [1,2] | sum }}
{{ messages | tojson }}{{ messages | tojson(indent=2) }}{{ {'é"\n\u007f\u2028🙂': 1.0, 'b': none, 'a': [true]} | tojson }}{{ {'é🙂\u007f': 1} | tojson(ensure_ascii=true) }}{{ {'b':1,'a':{}} | tojson(sort_keys=true, indent=1) }}{{ [] | tojson(indent=2) }}{{ [1,2] | tojson(separators=(',', ':')) }}
{{ undefined_thing | tojson }}
{{ {'items': 5}['items'] }}{{ {'a': 1}['items']() | list }}
{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}{% for k in {'a': 1} %}{{ k }}{% endfor %}{% for k, v in {'a': 1} | items %}{{ k }}{{ v }}{% endfor %}
{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}{{ 'a b c'.split(' ', 1) }}{{ 'a b c'.rsplit(' ', 1) }}{{ 'a\nb\r\nc\x0bd\n'.splitlines() }}{{ 'xxaxx'.strip('x') }}{{ 'abc'.replace('b', '') }}{{ 'aaa'.replace('a', 'b', 2) }}{{ 'aaa'.count('a') }}{{ 'héa'.find('a') }}{{ ','.join(['a','b']) }}{{ 'abc'.startswith(('x', 'a')) }}
{{ 'hello wORLD-foo é'.title() }}{{ 'hello wORLD-foo (bar) it\'s' | title }}{{ 'éA ß' | lower }}{{ 'éa' | upper }}{{ 'éA'.capitalize() }}
{{ "{} and {} {{x}} {a}".format(1, 'b', a=none) }}
{{ ('<b>' | safe) + '<c>' }}{{ '<b>' | safe ~ '<c>' }}{{ '<' + ('>' | safe) }}{{ '<b>' | safe | trim }}
{{ 'a\nb\n\nc' | indent }}{{ 'a\nb' | indent(2, true) }}{{ 'a\n\nb' | indent(2, first=false, blank=true) }}{{ 'a\n' | indent }}
{{ '3' | int }}{{ '3.7' | int }}{{ 'x' | int }}{{ 'x' | int(7) }}{{ 3.9 | int }}{{ '1.5' | float }}{{ 2.5 | round }}{{ 2.567 | round(2) }}{{ 2.1 | round(0, 'ceil') }}{{ -3 | abs }}
{{ none is none }}{{ 1 is number }}{{ true is integer }}{{ true is boolean }}{{ 1 is boolean }}{{ 'a' is string }}{{ [] is sequence }}{{ {} is mapping }}{{ {} is sequence }}{{ 'a' is iterable }}{{ 1 is iterable }}{{ undefined_thing is iterable }}{{ 3 is divisibleby 3 }}{{ 1 is not none }}{{ 'A' is upper }}{{ 1 is eq 1 }}{{ 1 is in [1] }}{{ range is callable }}{{ 'x' is in 'xyz' }}
{{ 1 is defined and 2 }}{{ 1 is defined or 2 }}
{{ messages.append(1) }}
{{ raise_exception('no') }}
{{ range(3) | list }}{{ range(1, 10, 3) | list }}{{ range(3)[1] }}{{ range(200000) }}
{{ dict(a=1, b=2) }}{{ dict({'a': 1}, b=3).b }}
{{ [1,2,3] | first }}{{ [1,2,3] | last }}{{ [] | first }}{{ 'abc' | last }}{{ 'abc' | reverse }}{{ [1,2] | reverse | list }}{{ 'abc' | list }}
{{ [[1,2],[3]] | map('length') | list }}{{ ['a ', ' b'] | map('trim') | join('|') }}{{ [1, 2, 3] | select('odd') | list }}{{ [0, 1] | select | list }}{{ [1,2] | reject('eq', 1) | list }}
{{ - 1 | abs }}{{ -(1) }}{{ +1 }}{{ 2 * -3 }}{{ 2 - -3 }}{{ not true and false }}{{ 1 or 1 / 0 }}{{ 10 - 2 - 3 }}{{ 2 ** 3 ** 2 }}
{{ {'a': {'b': [10, 20]}}.a.b.1 }}{{ {'a': {'b': [10, 20]}}['a']['b'][0] }}
{{ 1, 2 }}{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c + d }}
{% set q = messages[1:] %}{{ q | length }}{% set messages = messages[:1] %}{{ messages | length }}
{{ "\x41\u00e9\101\q\'" }}{{ 'a
b' }}
{{ true and 'x' }}{{ [] or 'y' }}{{ 0 and 1 }}{{ '' or none }}
{% if [] %}a{% elif {} %}b{% elif '' %}c{% else %}d{% endif %}
{{ messages is sequence }}{{ messages[0] is mapping }}{{ messages[0].content is string }}{{ loop is defined }}
{% generation %}gen{% endgeneration %}
{{ 1 | nofilter }}
{% if false %}{{ 1 | nofilter }}{% endif %}ok
{% if false %}{{ 1 is notest }}{% endif %}ok
{{ 'unclosed }}
{% if true %}
{{ ((1) }}
{{ {'a': 1} }}}
{{ '}}' }}{{ {'a': {'b': 1}} }}
{# unclosed
{% for x in none %}{% endfor %}
{% for a, b in [[1, 2, 3]] %}{% endfor %}
{% set ns = namespace() %}{% set ns.self = ns %}{{ ns.self.self.x }}
{% macro r(n) %}{{ n }}{% if n > 0 %}{{ r(n - 1) }}{% endif %}{% endmacro %}{{ r(5) }}
{{ m2(1) }}{% macro m2(x) %}{{ x }}{% endmacro %}
{% macro g() %}{{ later }}{% endmacro %}{% set later = 'L' %}{{ g() }}
{% for i in [1,2] %}{% for j in [1,2] %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }}{% endfor %}
{% for i in messages %}{{ i.role }}{% if not loop.last and messages[loop.index].role == i.role %}same{% endif %}{% endfor %}
{{ messages[-1]['content'] }}{{ messages|length - 1 }}{{ (messages|length) % 2 == 0 }}
{{ 'a' < 'b' }}{{ [1, 2] < [1, 3] }}{{ 'é' > 'z' }}
{{ 1 < 'a' }}
{{ [none, true] | join(',') }}{{ 'ab' | join('-') }}{{ [{'a': 1}] | join(',', attribute='a') }}
{{ messages | selectattr('content', 'string') | list | length }}{{ ['a', 1] | select('string') | list }}
{{ none | string }}{{ 1.0 | string }}{{ none | trim }}{{ 12 | trim }}{{ none | length }}
{{ caller }}{{ varargs }}
{% set f = namespace %}{{ f(a=1).a }}
{{ ''.join(messages | map(attribute='role')) }}
{{ messages | map(attribute='content.x') | list }}
{{ 'é' | length }}{{ {'a':1} | length }}{{ 'ab' | list | length }}
{{ true is sameas true }}{{ none is sameas none }}
{{ 1 if messages }}{{ messages and true }}
{{ 'a' is filter }}{{ 'upper' is filter }}
{{ super() }}
{{ {'a': 1, 'a': 2} }}{{ {[1]: 2} }}
{{ messages[true] is mapping }}{{ [1,2][1.0] }}
{{ 'x' ~ ('y' if 1) ~ ('z' if 0) }}
{% if not x is defined %}nd{% endif %}{{ x is not defined }}
{{ 10 | string + 'a' }}{{ 'a' + 10 | string }}{{ '%' + 'x' | upper + 'y' }}
{{ 3 * 'ab' | upper }}
{% for k in 'ab' %}{{ k }}{{ loop.nextitem is defined }}{% endfor %}
{% for x in [1,2,3] %}{{ x }}{{ ", " if not loop.last }}{% endfor %}
{% set x = namespace(v=[]) %}{% for i in [1,2] %}{% set x.v = x.v + [i] %}{% endfor %}{{ x.v }}
{% set content = messages[0].content if messages[0].content is string else messages[0].content[0].text %}{{ content }}
{{ 5 is gt 3 }}{{ 5 is lt(3) }}{{ 5 is ge 5 }}
{{ strftime_now('%d %b %Y') }}
{{ {'items': 5}['items'] }}{{ {'a': 1}.items() }}{{ {'a': 1}.keys() }}
{{ none | selectattr('x') | list }}{{ none | map('upper') | list }}
{{ "{} {0}".format(1) }}
{{ 'ab'.removeprefix('a') }}{{ 'ab'.removesuffix('b') }}{{ 'aXbXc'.rsplit('X', 1) }}{{ 'abc'.rfind('c') }}
{{ 'a' "b" }}{{ {'a': [1, {'b': none}]} }}
{{ 1.5 + 1 }} {{ 1 - 0.25 }} {{ 1.5 * 2 }} {{ 1.0 / 4 }} {{ 2.0 ** 3 }} {{ 2 ** 0.5 }} {{ -1.5 }} {{ - 0.0 }} {{ 1.5 != 1.5 }} {{ 1 != 2 }} {{ 'a' <= 'a' }} {{ 2 <= 1.5 }}
{{ -'a' }}
{{ -[1] }}
{{ 1 in 5 }}
{{ [1] in {} }}
{{ {} in {} }}
{{ 1 / 0.0 }}
{{ {'a': 1}.get('a') }}{{ {'a': 1}.get('b') }}{{ {'a': 1}.get('b', 2) }}
{{ {'a': 1}.get() }}
{{ {'a': 1}.copy() }}{{ [1, 2].copy() }}{{ [1, 2, 1].count(1) }}{{ (1, 2, 1).count(1) }}{{ (1, 2).index(2) }}{{ [1, 1.0, true].count(1) }}
{{ (1, 2).append(3) }}
{{ (1, 2).index(3) }}
{{ '{5}'.format(1) }}
{{ 'a\nb' | indent('> ') }}{{ 'a\nb' | indent('\t', true) }}{{ [1, {'a': 2}] | tojson(indent='\t') }}
{{ [1] | tojson(separators=(',',)) }}
{{ [1] | tojson(separators=(1, 2)) }}
{{ 3 | int }}{{ true | int }}{{ 3 | float }}{{ 2.5 | float }}{{ 'x' | float }}{{ 'x' | float(1.5) }}{{ none | int(4) }}{{ -1.5 | abs }}{{ -7 | abs }}
{{ 'a' | abs }}
{{ 'a' | round }}
{{ 'a' | upper(1) }}
{{ 'a' | trim(1, 2, 3) }}
{{ 'abc' | indent(1.5) }}
{{ true is true }}{{ 1 is true }}{{ false is false }}{{ 0 is false }}{{ 1.0 is float }}{{ 1 is float }}{{ x is undefined }}{{ 1 is undefined }}{{ ('a' | safe) is escaped }}{{ 'a' is escaped }}{{ 4 is even }}{{ 3 is even }}{{ 'odd' is test }}{{ 'oddly' is test }}
{% set n = namespace({'a': 1}, b=2) %}{{ n.a }}{{ n.b }}
{% set n = namespace(5) %}
{% set n = namespace() %}{% set n._x = 1 %}{{ n._x }}
{% set n = namespace(_x=1) %}{{ n._x }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, b=2) }}
{% macro m(a) %}{{ a }}{{ caller() if caller }}{% endmacro %}{{ m(1) }}
{% macro m(a) %}{{ caller() }}{% endmacro %}{{ m(1) }}
{{ 'a b  c '.split(none, 1) }}{{ '  a b '.split(none, 0) }}{{ 'aé🙂'.replace('', '-') }}{{ 'abc'.replace('', '-', 2) }}{{ ''.replace('', '-') }}
{{ ([1, 2] | map('abs')) | first }}{{ [] | map('abs') | first }}{{ messages | map(attribute='role') | first }}
{{ undefined_thing | items | list }}{{ 5 | items | list }}
{{ [[1], [1]] | unique | list }}
{{ [{}] | unique | list }}
{{ undefined_thing == other_thing }}{{ undefined_thing | list }}{{ undefined_thing | join }}{{ undefined_thing | length }}
{{ true.x }}{{ 1.5.x is defined }}{{ (1.5).x is defined }}{{ 1.5 + 'a' }}
{{ true + 'a' }}
{% for i in [1, 2] %}{{ loop | length }}{% endfor %}
{% for i in [1, 2] %}{{ loop.nothing is defined }}{% endfor %}
{{ 1 + }}
{{
{% if %}x{% endif %}
{% set %}
{{ }}
{{ 'ab'.upper() }}{{ [1, 2].index(2) }}{{ ['a', 'b'].index('c') }}
{{ (messages | map(attribute='role')).x is defined }}{{ {'a': 1}.items().x is defined }}
{% set x = 42 %}{% macro m(a, b=x, x=23) %}{{ a }}|{{ b }}|{{ x }}{% endmacro %}{{ m(1) }};{{ m(1, x=7) }};{{ m(1, 2, 3) }}
{% macro f(tools=tools, bos_token=bos_token) %}{{ tools is defined }}{{ bos_token }}{% endmacro %}{{ f() }}{{ f(1, 2) }}
{% macro g(a=b.x, b=1) %}{{ a }}{% endmacro %}{{ g() }}
{% set v = 5 %}{% macro w() %}{{ caller() }}{% endmacro %}{% call(v=v) w() %}[{{ v }}]{% endcall %}
{{ messages[0]._id is defined }}{{ messages[0]._id | default('n') }}{{ {'_id': 4}._id }}{{ messages[0]['_id'] }}{{ 'x'._x }}{{ [1]._x is defined }}{{ none._x }}{{ (1)._x }}
{{ 'x'.__class__ }}{{ 'x'.__class__ is defined }}{{ 'x'['__class__'] is defined }}{% for i in [1] %}{{ loop._length is defined }}{% endfor %}{% set n = namespace(a=1) %}{{ n._x }}
{{ 'x'.__class__.x }}
{{ [{}] | map(attribute='function.name', default='?') | join }}{{ [{}] | map(attribute='a', default=none) | join }}{{ [{}, [5]] | map(attribute=0, default='d') | list }}{{ [{}] | map(attribute='a.b', default={'b': 2}) | list }}{{ [1, 2] | map(attribute=none) | list }}{{ [0, 2] | selectattr(none) | list }}
{{ [{}] | map(attribute='a.b', default=none) | join }}
{{ [{}] | map(attribute='a.b', default=nothing) | join }}
{{ messages | pprint if false else 'y' }}{{ (1 | nope) if false else 'y' }}{{ [1 | nope] if false else 2 | upper }}{{ f(1 | nope) if false else 'y' }}{{ 'y' if true else 1 | nope }}{{ [1 | nope if false, 2][1] }}
{{ 'a' | nope if true else 'y' }}
{{ 1 | nope ~ (2 if true) }}
{{ 1 | nope, 2 if true }}
{% if false %}{% for i in [1] %}{{ i | nope }}{% endfor %}{% endif %}
{% if false %}{% for i in [] %}{% else %}{{ 1 | nope }}{% endfor %}{% endif %}
{% if false %}{% for i in [1] if i | nope %}{% endfor %}{% endif %}
{% if false %}{% for i in [1] | nope %}{% if i %}{{ i | nope }}{% endif %}{{ (i is nope) if i }}{% endfor %}{{ 1 | nope }}{% endif %}y
{% if false %}{% for i in [1] %}{% if i %}{% endif %}{{ i | nope }}{% endfor %}{% endif %}
{% if false %}{% macro m(a=1 | nope) %}{% endmacro %}{% endif %}
{% if false %}{% macro m() %}{{ 1 | nope }}{% endmacro %}{% endif %}
{% if false %}{% call m(1 | nope) %}{% endcall %}{% set x = 1 | nope %}{% with a = 1 | nope %}{% endwith %}{% endif %}y
{% if false %}{% call m() %}{{ 1 | nope }}{% endcall %}{% endif %}
{% if false %}{% set x %}{{ 1 | nope }}{% endset %}{% endif %}
{% if false %}{% set x | nope %}{% endset %}{% endif %}
{% if false %}{% filter nope %}{% endfilter %}{% endif %}
{% if false %}{% filter upper %}{{ 1 is nope }}{% endfilter %}{% endif %}
{% if false %}{% with a = 1 %}{{ 1 | nope }}{% endwith %}{% endif %}
{% if false %}{% generation %}{{ 1 | nope }}{% endgeneration %}{% endif %}
{% if false %}{% for i in [1] %}{{ i | pprint }}{% endfor %}{% endif %}y
{{ 'nan' | int(7) }} {{ 'inf' | int }} {{ '-inf' | int(3) }} {{ '1e999' | int }} {{ 'nan' | float | int(7) }} {{ '9' * 20 ~ 'x' | int(7) }} {{ ('9' * 20 ~ 'x') | int(7) }}
{{ '1e999' | float }} {{ '-1e999' | float }} {{ '1e-999' | float }} {{ '-1e-999' | float }} {{ '4e-320' | float }} {{ 'nan' | float }} {{ 'Infinity' | float(2) }} {{ 'nan(1)' | float }} {{ ('1' ~ '0' * 400) | float }} {{ ('0.' ~ '0' * 400 ~ 1) | float }}
{{ 1e999 }} {{ -1e999 }} {{ 1e-999 }} {{ [1e999, -1e999] | tojson }} {{ [1e999] }}
{{ 'inf' | float | int }}
{{ '1_000' | int }} {{ '1_0.5_0' | float }} {{ 'a_b' | int(7) }} {{ '_1' | int }} {{ '1_' | float }} {{ '1__0' | int }} {{ '1_0.5' | int }} {{ '1_.5' | float }} {{ '1e1_0' | float }} {{ '-_1' | int }} {{ ' +1_0 ' | int }}
'''

TEMPLATES = [
    # White space: of tags, comments, raw text and expressions, at the beginnings and ends of lines.
    "  {{ 1 }}\n    {% if true %}\n  x {{ 'a' }}\n    {% endif %}\na\n",
    "a\n{%- if true -%}  b  {%- endif +%}\nc\n\t{#- comment -#}  d\n   {# c #}\ne {# x #}\n\n",
    "{% raw %} {{ x }} {% endraw %}\n {%- raw -%}  {{ y }}  {%- endraw -%}  f\n  {% raw +%}\n",
    "{%+ if true %} g\n  {%+ endif %}\n \x0b{% if true %}\u00a0{% endif %}\r\nx\ry{{ '\\r\\n' }}\r\n",
    "{% if true %}\n\n{# c -#}\n  {{- 'v' -}}  \n{% endif %}\n {{ 'v' }} ",
    # A chat with tools, a macro for a turn, thoughts that only the last answer keeps.
    """{%- macro turn(role, text, end=true) -%}
<|{{ role }}|>
{{ text | trim }}{{ "<|end|>\n" if end }}
{%- endmacro -%}
{{- bos_token }}
{%- set ns = namespace(last=messages | length - 1) %}
{%- for message in messages[::-1] if message.role == 'user' %}
    {%- if loop.first %}{% set ns.last = messages.index(message) %}{% endif %}
{%- endfor %}
{%- for tool in tools or [{'name': 'add', 'parameters': {'a': {'type': 'number'}}}] %}
    {%- if loop.first %}{{ "# Tools\n" }}{% endif %}
    {{- '- ' ~ tool.name ~ ': ' ~ tool | tojson(indent=2) ~ "\n" }}
    {%- for key, value in tool.parameters | dictsort %}{{ key }}={{ value.type }}{{ ", " if not loop.last }}{% endfor %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else message.content | map(attribute='text') | join('\\n') %}
    {%- if '</think>' in content and loop.index0 < ns.last %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {%- if loop.previtem is defined and loop.previtem.role == message.role %}
        {{- raise_exception('roles alternate') }}
    {%- endif %}
{{ turn(message['role'], content, end=not loop.last) }}
{%- endfor %}
{% if add_generation_prompt is not defined %}{{ turn('assistant', '', false) }}{% endif %}""",
]

REFUSED = [
    ["{{ 5[1:2] }}", "not subscriptable"], ["{{ none[1:2] is defined }}", "not subscriptable"],  # which Jinja folds to nothing
    ["{{ 'straße' | upper }}", "several characters"], ["{{ 'x: %s' % 3 }}", "formatting by %"], ["{{ 0x10 }}", "a number with letters"],
    ["{%- set sep = joiner(', ') %}{{ sep() }}", "'joiner'"], ["{{ 'a' is sameas 'a' }}", "sameas"],
    ["{{ '%s' | format(1) }}", "the filter 'format'"], ["{{ [1] | batch(2) | list }}", "the filter 'batch'"],
    ["{% block x %}{% endblock %}", "the tag 'block'"], ["{% for x in [1] recursive %}{% endfor %}", "recursive"],
    ["{{ 'x' | e }}", "the filter 'e'"], ["{{ 'ab'.upper }}", "a function is written"], ["{{ 'a'.isupper() }}", "'isupper' of a str"],
    ["{{ dict(*[]) }}", "arguments in a list"], ["{% macro m() %}{{ varargs }}{% endmacro %}{{ m() }}", "'varargs'"],
    ["{{ '{:>3}'.format(1) }}", "format()"], ["{{ 9223372036854775807 + 1 }}", "2^63"],
    ["{{ [1] | map('nothing') | list }}", "'nothing'"], ["{{ ('a' | safe).upper() }}", "'upper' of text from the filter safe"],
    ["{{ range(3) }}", "a range is written"], ["{{ (1).real }}", "'real' of a int"],
    ["{{ [1] * 2000000000 }}", "a list of more than"], ["{{ messages | sort(attribute='role,content') }}", "several attributes"],
    ["{{ [('nan' | float), 1] | sort }}", "nan has no order"], ["{{ range.start }}", "'start' of a function"],
    ["{{ 'a' | indent(1000001) }}", "an indentation of 1000001 spaces"], ["{{ [1] | tojson(indent=1000001) }}", "an indentation of 1000001 spaces"],
    ["{% set n = namespace({1: 2}) %}", "a name that is a int"], ["{{ (-8) ** 0.5 }}", "complex"],
]


class Date:
    """A clock that stands."""

    @staticmethod
    def now():
        from datetime import datetime

        return datetime(2024, 7, 26, 12)


def answer(source):
    chat_template_utils.datetime = Date
    try:
        return {"text": chat_template_utils._compile_jinja_template(source).render(**copy.deepcopy(VARIABLES))}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    sources = LINES.strip("\n").split("\n") + TEMPLATES
    alike = [{"source": source, **answer(source)} for source in sources]
    assert not any(re.search("0x[0-9a-f]{8}", case.get("text", "")) for case in alike)
    refused = [{"source": source, "names": names} for source, names in REFUSED]
    lines = [json.dumps(VARIABLES, ensure_ascii=True)]
    lists = ["[\n  " + ",\n  ".join(json.dumps(case) for case in cases) + "\n ]" for cases in (alike, refused)]
    path = Path(__file__).with_name("jinja.json")
    path.write_text(f'{{"variables": {lines[0]},\n "alike": {lists[0]},\n "refused": {lists[1]}}}\n')


if __name__ == "__main__":
    main()
