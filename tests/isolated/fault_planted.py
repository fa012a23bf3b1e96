"""Scenarios with a fault of their own, each of which the sweep has to find: the check that it can fail."""

import contextlib
import os
import time

from cuda_core import CUDAError, Device
from fault_scenarios import Scenario

kept = []


def event():
    return Device(0).create_event()


def swallows():
    with contextlib.suppress(CUDAError):
        event()


def leaks():
    try:
        event()
    except CUDAError:
        kept.append(Device(0).create_stream())
        raise


def tells_another():
    try:
        event()
    except CUDAError as error:
        raise RuntimeError("something else") from error


def crashes():
    try:
        event()
    except CUDAError:
        os.abort()


def hangs():
    try:
        event()
    except CUDAError:
        time.sleep(600)


def does_not_recover():
    if kept:
        raise RuntimeError("never again")
    try:
        event()
    except CUDAError:
        kept.append(True)
        raise


PLANTED = {
    "failed and nobody was told": swallows,
    "streams=1 left alive": leaks,
    "was told as RuntimeError": tells_another,
    "ended by status": crashes,
    "no end after": hangs,
    "the second run ended in RuntimeError": does_not_recover,
}

SCENARIOS = {words: Scenario((), True, function) for words, function in PLANTED.items()}
