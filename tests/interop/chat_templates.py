"""Chat templates with the constructs of those that models ship, and snippets of what templates may use."""

TEMPLATES = {
    "llama2": """
{%- if messages[0]['role'] == 'system' %}
    {%- set rest = messages[1:] %}{% set system = messages[0]['content'] %}
{%- else %}
    {%- set rest = messages %}{% set system = false %}
{%- endif %}
{%- for m in rest %}
    {%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
    {%- if loop.index0 == 0 and system != false %}
        {%- set text = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m['content'] %}
    {%- else %}
        {%- set text = m['content'] %}
    {%- endif %}
    {%- if m['role'] == 'user' %}{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}
    {%- elif m['role'] == 'assistant' %}{{ ' ' + text.strip() + ' ' + eos_token }}{% endif %}
{%- endfor %}""",
    "llama3": """{% set ns = messages %}{% for m in ns %}{% set text = '<|start_header_id|>' + m['role'] +
 '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set text = bos_token + text %}{% endif %}{{ text }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}""",
    "llama3.1": """{{- bos_token }}
{%- if own_tools is defined %}
    {%- set tools = own_tools %}
{%- endif %}
{%- if not day is defined %}
    {%- set day = "26 Jul 2024" %}
{%- endif %}
{#- The system message comes first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today Date: " + day + "\\n\\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "qwen2": """{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful assistant.<|im_end|>
' }}{% endif %}{{ '<|im_start|>' + m['role'] + '
' + m['content'] + '<|im_end|>' + '
' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}""",
    "qwen2.5": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are helpful.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n{\\"name\\": <function-name>}<|im_end|>\\n" }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "qwen3": """{%- set ns = namespace(searching=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if message.role == "assistant" %}
        {%- set thoughts = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thoughts = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thoughts = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and thoughts)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + thoughts.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if thinks is defined and thinks is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "mistral0.1": """{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}{% elif m['role'] == 'assistant' %}{{ m['content'] + eos_token + ' ' }}{% else %}{{ raise_exception('only user and assistant') }}{% endif %}{% endfor %}""",
    "mistral0.3": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set users = loop_messages | selectattr("role", "equalto", "user") | list %}
{#- Calls and their results do not count. #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == users[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("ids have nine characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("unknown role") }}
    {%- endif %}
{%- endfor %}
""",
    "gemma": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system message') }}{% endif %}{% for m in messages %}{% if (m['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = m['role'] %}{% endif %}{{ '<start_of_turn>' + role + '
' + m['content'] | trim + '<end_of_turn>
' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model
'}}{% endif %}""",
    "gemma3": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '
' + (prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
""",
    "phi3": """{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'user' %}{{'<|user|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>
' + message['content'] + '<|end|>
'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>
' }}{% else %}{{ eos_token }}{% endif %}""",
    "phi4": """{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}{% else %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}""",
    "chatml": """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}
{% for message in messages %}
{{'<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n'}}
{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
""",
    "zephyr": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{% generation %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endgeneration %}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
""",
    "typed_tools": """{%- macro type_of(spec) -%}
    {%- set names = {"string": "str", "integer": "int", "number": "float"} -%}
    {%- if names[spec.type] is defined %}{{ names[spec.type] }}
    {%- elif spec.type == "array" %}{{ "list[" + type_of(spec["items"]) + "]" }}
    {%- elif spec.type == "object" and spec.properties %}{ {%- for k, v in spec.properties|dictsort %}{{ k }}: {{ type_of(v) }}{{ ", " if not loop.last }}{% endfor -%} }
    {%- else %}{{ spec.type | default("Any", true) }}{% endif -%}
{%- endmacro -%}
{%- macro line(role, text="", end="\\n") %}[{{ role|upper }}] {{ text|indent(2) }}{{ end }}{% endmacro %}
{%- for tool in tools or [] %}
    {%- set f = tool.function %}
    {{- f.name }}(
    {%- for name, spec in f.parameters.properties.items() %}{{ name }}: {{ type_of(spec) }}{% if spec.enum %} in {{ spec.enum }}{% endif %}{% if not loop.last %}, {% endif %}{% endfor %})
{% endfor %}
{%- set seen = namespace(roles=[], n=0) %}
{%- for m in messages if m.role != 'tool' %}
    {%- if m.role == 'system' and not loop.first %}{% continue %}{% endif %}
    {%- if loop.index > 6 %}{% break %}{% endif %}
    {%- set seen.roles = seen.roles + [m.role] %}
    {%- set seen.n = seen.n + (m.content or '')|length %}
    {{- line(m.role, text=m.content|default('-')|string) }}
{%- else %}nothing
{%- endfor %}
{{- seen.roles|unique|join('/') ~ ' ' ~ seen.n }} {{ seen.roles }} {{ (seen.roles|length / 2)|int }}
{%- set tail %} last: {{ messages[-1].role }}
{% endset %}{{ tail|trim }}{{ line('assistant', end='') if add_generation_prompt }}""",
}

# One template of expressions and statements, and its variables.
VARIABLES = {
    "text": "Grüße, the 'quick' \"fox\"\n\tend ", "empty": "", "one": 1, "zero": 0, "half": 0.5, "none": None, "yes": True,
    "words": ["b", "A", "c", "a", "b"], "numbers": [3, 1.5, 2, True], "nested": [[1, "x"], {"k": None}],
    "mapping": {"z": 1, "a": [1, 2.0], "é": {"B": False}}, "rows": [{"n": "x", "v": 2}, {"n": "Y", "v": 1}, {"n": "x"}],
}
SNIPPETS = """
{{ text }}|{{ text|trim }}|{{ text.strip() }}|{{ text.lstrip('Gr') }}|{{ text.rstrip() }}|{{ text|length }}
{{ text|upper }}|{{ text.lower() }}|{{ text|title }}|{{ text.title() }}|{{ text|capitalize }}|{{ 'ǆx ΑΣ'|capitalize }}|{{ 'ΑΣ'.lower() }}
{{ text.split() }}|{{ text.split(' ') }}|{{ text.split(' ', 1) }}|{{ text.rsplit(None, 1) }}|{{ 'a,b,,c'.split(',') }}|{{ ''.split(',') }}|{{ ' '.split() }}
{{ 'a\\nb\\r\\nc\\n'.splitlines() }}|{{ 'x'.join(words) }}|{{ 'abcabc'.find('c') }}|{{ 'äbcäbc'.rfind('b') }}|{{ 'aXbX'.count('X') }}|{{ 'abc'.count('') }}
{{ text.startswith('Gr') }}|{{ text.endswith(('x', ' ')) }}|{{ 'abc'.removeprefix('a') }}|{{ 'abc'.removesuffix('c') }}|{{ 'aaa'.replace('a', 'b', 2) }}|{{ 'ab'.replace('', '-') }}
{{ text[0] }}|{{ text[-2:] }}|{{ text[::-1] }}|{{ text[1:9:3] }}|{{ text[99:] }}|{{ text[-99:2] }}|{{ words[-1] }}|{{ words[1:3] }}|{{ words[::-2] }}|{{ words[9] }}|{{ words[-9] }}
{{ 1 + 2 * 3 ** 2 }}|{{ -7 // 2 }}|{{ -7 % 3 }}|{{ 7 / 2 }}|{{ 2 ** -1 }}|{{ 7.5 // 2 }}|{{ -7.5 % 2 }}|{{ 1 + half }}|{{ true + 1 }}|{{ 'ab' * 2 }}|{{ [1] * 2 + [3] }}|{{ -half }}|{{ +yes }}|{{ -2 ** 2 }}
{{ 1e3 }}|{{ 1.0 }}|{{ 1e22 }}|{{ 1e16 }}|{{ 123456789012345.6 }}|{{ 0.0001 }}|{{ 0.00001 }}|{{ 1.5e-7 }}|{{ 0.1 + 0.2 }}|{{ 100000000000000000 }}
{{ none }}|{{ yes }}|{{ nested }}|{{ mapping }}|{{ (1, 'a') }}|{{ (1,) }}|{{ () }}|{{ [] }}|{{ {} }}|{{ [undefined_name] }}|{{ ["it's", 'a"b', "both'\\"", "\\n\\t\\x01\\u200b\\\\é"] }}|{{ 'a' ~ 1 ~ none ~ missing ~ [1] }}|{{ missing }}|{{ missing is defined }}|{{ mapping.missing }}|{{ mapping['z'] }}|{{ mapping.a[0] }}|{{ mapping['é'].B }}
{{ 1 < 2 < 3 }}|{{ 1 == 1.0 }}|{{ true == 1 }}|{{ 'a' < 'B' }}|{{ [1, 2] < [1, 3] }}|{{ 'a' in 'cat' }}|{{ 3 not in numbers }}|{{ 'z' in mapping }}|{{ [1] == (1,) }}|{{ missing == other }}|{{ none == false }}|{{ 'x' if one }}|{{ 'x' if zero }}|{{ 'x' if zero else 'y' if one else 'z' }}|{{ zero or 'd' }}|{{ one and 'e' }}|{{ not empty }}|{{ not zero and one }}
{{ words|sort }}|{{ words|sort(reverse=true) }}|{{ words|sort(case_sensitive=true) }}|{{ words|unique|list }}|{{ words|join('-') }}|{{ numbers|max }}|{{ words|min }}|{{ rows|sort(attribute='n')|map(attribute='n')|list }}
{{ mapping|dictsort|map('first')|list }}|{{ mapping|items|list }}|{{ mapping.items()|list }}|{{ mapping.keys()|list }}|{{ mapping.values()|list }}|{{ mapping.get('q', 5) }}|{{ mapping.get('q') }}|{{ mapping|list }}|{{ mapping|length }}|{{ mapping|first }}
{{ rows|selectattr('v')|list }}|{{ rows|selectattr('v', 'equalto', 2)|list }}|{{ rows|rejectattr('v', 'defined')|list }}|{{ rows|map(attribute='v', default=7)|list }}|{{ words|select('in', ['a', 'A'])|list }}|{{ words|reject('equalto', 'b')|list }}|{{ words|map('upper')|join }}
{{ words|first }}|{{ words|last }}|{{ []|first }}|{{ text|first }}|{{ words|reverse|list }}|{{ 'abé'|reverse }}|{{ text|list }}|{{ none|string|upper }}|{{ '5'|int + 1 }}|{{ ' 4.9 '|int }}|{{ 'x'|int }}|{{ 'x'|int(3) }}|{{ -4.9|int }}|{{ '1_000'|int }}|{{ '1.5'|float }}|{{ 'q'|float }}|{{ -3|abs }}
{{ empty|default('d') }}|{{ empty|default('d', true) }}|{{ missing|default }}|{{ missing|default('d') }}|{{ none|d('d') }}|{{ 'a\\n\\nb\\n'|indent }}|{{ 'a\\n\\nb'|indent(2, true, true) }}|{{ 'a\\nb'|indent('> ') }}|{{ 'xxaxx'|trim('x') }}
{{ mapping|tojson }}|{{ mapping|tojson(indent=2) }}|{{ nested|tojson(separators=(',', ':')) }}|{{ mapping|tojson(sort_keys=true) }}|{{ text|tojson(ensure_ascii=true) }}|{{ text|tojson }}|{{ [1e22, 0.5, none, true, (1, 2), '<&\\x7f\\x01>']|tojson }}|{{ {}|tojson(indent=1) }}|{{ '<b>'|safe }}
{{ one is number }}|{{ yes is number }}|{{ yes is integer }}|{{ half is float }}|{{ text is string }}|{{ mapping is mapping }}|{{ text is iterable }}|{{ mapping is sequence }}|{{ none is none }}|{{ missing is iterable }}|{{ one is iterable }}|{{ yes is true }}|{{ one is true }}|{{ zero is false }}|{{ yes is boolean }}|{{ one is odd }}|{{ 4 is divisibleby 2 }}|{{ one is in [1] }}|{{ one is eq 1 }}|{{ one is not ne 1 }}|{{ 2 is gt 1 }}|{{ words is not none }}
{% set s = "a <b> & 'c' \\"d\\"" %}{% set m = s|safe %}{{ m + s + 1|string }}|{{ s + m }}|{{ m + m }}|{{ ('<' ~ m) + '<' }}|{{ mapping|tojson|safe + '<' }}|{{ m * 2 + '<' }}|{{ m[2:5] + '<' }}|{{ m[2] + '<' }}|{{ [m, s, {m: m}] }}|{{ m == s }}|{{ s in [m] }}|{{ 'b' in m }}|{{ m < 'b' }}|{{ m|length }}|{{ m is iterable }}|{{ {'a': 1}['a'|safe] }}|{{ [m]|tojson }}|{{ '5'|safe|int }}|{% for c in m[2:4] %}{{ c + '<' }}{% endfor %}
{{ m|upper + '<' }}|{{ m|capitalize + '<' }}|{{ m|title + '<' }}|{{ m|trim + '<' }}|{{ m|string + '<' }}|{{ m|replace('b', '<') + '<' }}|{{ m|indent + '<' }}|{{ m|first + '<' }}|{{ m|last + '<' }}|{{ m|reverse + '<' }}|{{ [m]|join('<'|safe) + '<' }}|{{ m|default('x') + '<' }}|{{ m.strip('a') + '<' }}|{{ m.title() + '<' }}|{{ m.replace('b', '<') + '<' }}|{{ m.split() }}|{{ '<'.join([m]) + '<' }}|{{ m.join('<>') + '<' }}|{{ m.removeprefix('a') + '<' }}|{{ m.find('b') }}|{{ missing|safe + '<' }}|{{ words|map('safe')|list }}
{{ '{}-{}{{}}'.format('a', 2) }}|{{ '{1}{0}{x}'.format(none, true, x=[1]) }}|{{ '{:d} {:s} {:.2f} {:f} {:05d} {:3d} {:08.3f} {:} {:d}'.format(5, 'a', 3.14159, 1, -42, 7, -1.5, half, yes) }}|{{ ('{}<{:d}'|safe).format('<', 5) + '<' }}|{{ '{}'.format(m) + '<' }}|{{ '%s-%d%%'|format('a', 2) }}|{{ '%s %s' % (1, none) }}|{{ '%s' % words }}|{{ '%.2f|%5.1f|%05d|%3d' % (3.14159, 2.25, -42, 7) }}|{{ ('%s<%d'|safe) % ('<', 5) + '<' }}|{{ '%s' % m + '<' }}|{{ '%s' % missing }}
{% set n = {0: 'zero', 512: 'x'} %}{{ n[512] }}{{ n[true] }}{{ n[0.0] }}{{ n.0 }}|{{ 512 in n }}{{ '0' in n }}{{ none in n }}|{{ n.get(0) }}{{ n.get(9, 'd') }}|{% for k, v in n.items() %}{{ k + 1 }}{{ v }}{% endfor %}{% for k in n %}{{ k }}{% endfor %}|{{ n|dictsort(reverse=true) }}{{ n|items|list }}{{ n|list }}{{ n|max }}|{{ n }}|{{ {1: 'a', true: 'b', 1.0: 'c', none: 'd', 'x': 'e', 2.5: 'f', false: 'g'} }}|{{ {none: 1, 2.5: 2, false: 3}|tojson }}|{{ {3: 1, 1: 2}|tojson(sort_keys=true) }}|{{ {1: 2} == {true: 2.0} }}{{ {1: 2} == {'1': 2} }}|{{ dict({'a': 1, 2: 2}, a=3) }}
{% filter upper %}a{{ m }}{% set q = 1 %}{% filter lower %}B{% endfilter %}{% endfilter %}{{ q is defined }}|{% filter trim|replace('a', m) %}  a {% endfilter %}|{% for i in [1, 2] %}{% filter upper %}a{% if i == 1 %}b{% endif %}{% endfilter %}{% endfor %}|{%- filter format(5) -%} %d {%- endfilter -%} |{% set x | trim | upper %} a {% endset %}[{{ x }}]{% set x | length %}abc{% endset %}{{ x + 1 }}
{% for w in words %}{{ loop.index }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}
{% for k, v in mapping.items() %}{{ k }}={{ v }};{% endfor %}|{% for k in mapping %}{{ k }}{% endfor %}|{% for c in 'äb' %}{{ c }}.{% endfor %}|{% for x in missing %}{% else %}none{% endfor %}|{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }},{% endfor %}|{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}
{% for w in words if w != 'b' %}{{ loop.index }}{{ w }}{{ loop.last }}{% endfor %}|{% for i in range(9) %}{% if i == 2 %}{% continue %}{% elif i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}|{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}|{% if true %}{% set x = 9 %}{% endif %}{{ x }}|{% set a, b = 1, 'z' %}{{ a }}{{ b }}|{% set s %} in {{ x }} {% endset %}[{{ s }}]
{% set ns = namespace(n=0, l=[]) %}{% for i in [1, 2, 3] %}{% set ns.n = ns.n + i %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.n }}{{ ns.l }}{{ ns.q is defined }}|{{ dict(a=1, b='x') }}|{{ namespace({'k': 2}, j=3).k }}|{% macro m(a, b='d', c=a) %}[{{ a }}{{ b }}{{ c }}{{ x is defined }}]{% endmacro %}{{ m(1) }}{{ m('p', c=3) }}{{ m() }}{{ m(b=m(2)) }}{{ m(1)|length }}
  {% if true %}  
  kept  
  {%- endif %}   
 a {{- ' b ' -}} c {# note #}
{#- gone -#} d {%+ if true +%} 
 e {% endif %}{{ 'x' -}}  
 f
{{ 'a' 'b' "c" }}|{{ '\\x41\\u00e9\\U0001F600\\101\\q\\'' }}|{{ "a\\
b" }}|{{ {'a': {'b': 1}}['a']['b'] }}|{{ {'a': 1}.a }}|{{ [[1, 2], [3]][0][1] }}|{{ words.0 }}|{{ ('a' if one else 'b') ~ 'c' }}|{{ (1, 2)[1] }}|{{ words|length > 3 and words[0] == 'b' }}|{{ range(3)|list }}|{{ range(1, 9, 3)|length }}|{{ range(5)[2] }}|{{ 'abc' is in ['abc'] }}|{{ text is defined and text|length > 3 }}|{{ 1 if 'x' is string else 2 }}|{{ 'a' if missing is defined else 'b' }}|{{ strftime_now is defined }}|{{ strftime_now('%%') }}
{% generation %}g{% set y = 1 %}{% endgeneration %}{{ y is defined }}|{% if empty %}1{% elif words %}2{% else %}3{% endif %}|{% if none %}1{% else %}{% if zero %}2{% else %}3{% endif %}{% endif %}
"""[1:-1]
