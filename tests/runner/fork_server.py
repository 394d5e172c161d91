"""Imports PyTorch and transformers once and runs many scripts: the imports take seconds, a fork some milliseconds.

    fork_server.py SOCKET

Each request (protocol.h) runs a script as __main__ in a copy of this process. It ends when its standard input does.
"""

import array
import os
import runpy
import select
import signal
import socket
import struct
import sys
import traceback

import numpy  # noqa: F401
import safetensors.torch  # noqa: F401
import tokenizers  # noqa: F401
import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from huggingface import CAUSAL, ENCODER_DECODERS  # noqa: E402

REQUEST, ENDED = struct.Struct("=4I"), struct.Struct("=iiq")


def import_what_tests_use():
    """Classes that transformers would import at their first use: half a second for a file that has all families."""
    encoders = ("bert", "albert", "distilbert", "roberta", "xlm-roberta", "electra", "mpnet", "deberta-v2", "modernbert", "nomic_bert")
    models = [MODEL_MAPPING_NAMES[model_type] for model_type in (*CAUSAL, *ENCODER_DECODERS, *encoders)]
    for name in ("AutoTokenizer", "PreTrainedTokenizerFast", "GenerationConfig", *models):
        getattr(transformers, name)


def receive(channel):
    """(arguments, variables, folder, streams) of a request; streams {number: descriptor}."""
    descriptors = array.array("i")
    head, ancillary, _, _ = channel.recvmsg(REQUEST.size, socket.CMSG_SPACE(3 * descriptors.itemsize))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data)
    arguments, variables, size, mask = REQUEST.unpack(head)
    data = b""
    while len(data) < size:
        part = channel.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    texts = [os.fsdecode(text) for text in data.split(b"\0")]
    open_streams = [stream for stream in range(3) if mask & 1 << stream]
    return (texts[:arguments], texts[arguments:arguments + variables], texts[arguments + variables],
            dict(zip(open_streams, descriptors)))


def become(arguments, variables, folder, streams):
    """Runs the script arguments[1] and does not return."""
    code = 1
    try:
        for stream in range(3):
            os.dup2(streams[stream], stream) if stream in streams else os.close(stream)
        for descriptor in streams.values():
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(variable.split("=", 1) for variable in variables)
        os.chdir(folder)
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 2)))
        sys.argv = arguments[1:]
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = code or 1
        os._exit(code)


def serve(path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(64)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    clients = {}  # process: channel
    while True:
        ready, _, _ = select.select([sys.stdin, listener, wake, *clients.values()], [], [])
        if sys.stdin in ready:
            break
        for process, channel in clients.items():
            if channel in ready:  # whoever asked has been killed
                os.kill(process, signal.SIGKILL)
        if wake in ready:
            os.read(wake, 4096)
            while clients:
                process, status, used = os.wait4(-1, os.WNOHANG)
                if process == 0:
                    break
                channel = clients.pop(process)
                try:
                    channel.send(ENDED.pack(status, 0, int((used.ru_utime + used.ru_stime) * 1e6)))
                except OSError:
                    pass
                channel.close()
        if listener in ready:
            channel, _ = listener.accept()
            request = receive(channel)
            process = os.fork()
            if process == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for each in (listener, channel, *clients.values()):
                    each.close()
                become(*request)
            for descriptor in request[3].values():
                os.close(descriptor)
            channel.send(struct.pack("=i", process))
            clients[process] = channel
    for process in clients:
        os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    import_what_tests_use()
    serve(sys.argv[1])
