"""By hand: how fast `tzoo serve` answers clients who ask at once. TZOO names the program.

    load_serve.py MODEL [--clients 1 4 16] [--seconds 30] [--serve_flags '--weights int8']

Each client streams completions, one after another: prompts of 32 to 256 random ids, answers of 64 to 128 tokens.
"""

import argparse
import http.client
import json
import random
import shlex
import statistics
import threading
import time

from serving import Server


def ask(port, draw, vocabulary, found, until):
    while time.monotonic() < until:
        fields = {
            "prompt": [draw.randrange(vocabulary) for _ in range(draw.randint(32, 256))],
            "max_tokens": draw.randint(64, 128),
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        begin, first, count = time.monotonic(), None, 0
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        connection.request("POST", "/v1/completions", json.dumps(fields), {"Content-Type": "application/json"})
        for line in connection.getresponse():
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            first = first or time.monotonic() - begin
            count = event["usage"]["completion_tokens"] if event.get("usage") else count
        connection.close()
        found.append((count, first, time.monotonic()))


def measure(port, clients, vocabulary, seconds):
    found, begin = [], time.monotonic()
    threads = [
        threading.Thread(target=ask, args=(port, random.Random(i), vocabulary, found, begin + seconds)) for i in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    firsts = sorted(first for _, first, _ in found)
    return {
        "clients": clients,
        "answers": len(found),
        "tokens_per_second": round(sum(count for count, _, _ in found) / (time.monotonic() - begin), 1),
        "first_token_median": round(statistics.median(firsts), 3),
        "first_token_99": round(firsts[min(len(firsts) - 1, int(len(firsts) * 0.99))], 3),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--vocabulary", type=int, default=50000)
    parser.add_argument("--serve_flags", default="", help="such as '--weights int8 --parallel 16'")
    flags = parser.parse_args()
    server = Server("--model", flags.model, *shlex.split(flags.serve_flags))
    measure(server.port, 1, flags.vocabulary, 1)
    for clients in flags.clients:
        print(json.dumps(measure(server.port, clients, flags.vocabulary, flags.seconds)), flush=True)
    server.close()


if __name__ == "__main__":
    main()
