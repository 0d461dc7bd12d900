// What the programs here have in common.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func decode[T any](document json.RawMessage) *T {
	object := new(T)
	check(json.Unmarshal(document, object))
	return object
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
