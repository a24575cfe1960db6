# Threads that pass objects on: each makes batches and drops those that another made.
import queue
import sys
import threading


def work(number, mine, other, batches, results):
    total, state = 0, number + 1
    for _ in range(batches):
        batch = []
        for i in range(100):
            state = (state * 1103515245 + 12345) % 2147483648
            batch.append({"key": "item %d" % (state % 997), "values": [i, state], "text": "x" * (state % 100)})
        other.put(batch)
        received = mine.get()
        total += sum(len(item["text"]) + item["values"][0] for item in received)
    results[number] = total


count, threads = int(sys.argv[1]), int(sys.argv[2])
queues = [queue.Queue(8) for _ in range(threads)]
results = [0] * threads
workers = [
    threading.Thread(target=work, args=(n, queues[n], queues[(n + 1) % threads], count // 100 // threads, results))
    for n in range(threads)
]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(sum(results))
