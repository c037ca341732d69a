"""Devices, shared by all objects of a process that ask for the same one."""

import os
import threading

from ._sesame import Device

_cache = {}
_lock = threading.Lock()
_threads = 0


def set_num_threads(threads):
    """Sets the number of CPU threads of models opened from now on; 0: one per core."""
    global _threads
    if not isinstance(threads, int) or not 0 <= threads <= 1024:
        raise ValueError(f"threads must be 0 to 1024, not {threads!r}")
    _threads = threads


def device_name(device):
    """The library's name of a device as transformers accepts it: None, "cpu", "cuda:0", -1, 0, torch.device."""
    if device is None or device == -1:
        return "cpu"
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    return str(device)


def dtype_name(dtype):
    """The library's name of a dtype as transformers accepts it: None and "auto" as the weights are, "int8", torch.float16."""
    return None if dtype is None or dtype == "auto" else str(dtype).removeprefix("torch.")


def get_device(device=None, threads=None, dtype=None, isa=None):
    """A Device, the same one for the same arguments. A Device is returned as it is."""
    dtype = dtype_name(dtype)
    if isinstance(device, Device):
        if (threads, dtype, isa) != (None, None, None):
            raise ValueError("threads, dtype and isa are settings of the Device that is given")
        return device
    key = (os.getpid(), device_name(device), _threads if threads is None else threads, dtype, isa)
    with _lock:
        if key not in _cache:
            _cache[key] = Device(key[1], threads=key[2], dtype=dtype, isa=isa)
        return _cache[key]


class Reopened:
    """An object that owns a handle of the library and the arguments to open it: it opens the handle again after it
    was pickled, and in a process that was forked."""

    _handle_pid = None
    _handle_value = None
    _device_arguments = {}

    def _open(self):
        raise NotImplementedError

    @property
    def device(self):
        """Name of the device that computes: "cpu", "cuda:0"."""
        device = self._device_arguments["device"]
        return device.name if isinstance(device, Device) else device_name(device)

    @property
    def _handle(self):
        if self._handle_pid != os.getpid():
            self._handle_value = self._open()
            self._handle_pid = os.getpid()
        return self._handle_value

    def __getstate__(self):
        state = dict(self.__dict__)
        for name in ("_handle_pid", "_handle_value", "_derived"):
            state.pop(name, None)
        if isinstance(state.get("_device_arguments", {}).get("device"), Device):
            raise TypeError("an object that was opened with a Device cannot be pickled: open it by the device's name")
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)


# A lock that another thread held during a fork would never be released.
def _after_fork():
    global _lock
    _lock = threading.Lock()
    _cache.clear()


os.register_at_fork(after_in_child=_after_fork)
