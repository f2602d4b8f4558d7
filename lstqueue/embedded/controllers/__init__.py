"""What makes the embedded cluster move: controllers that see every write of the store and answer with writes.

They are the parts of a real cluster that lstqueue depends on (Job controller, scheduler, kubelets with the
node and taint controllers, garbage collector), reduced to what can be observed through the API. All run in
one virtual loop on the store in process; work that an event causes is done in a later callback, never inside
the event, so that writers meet the same interleavings as with a real cluster.
"""
