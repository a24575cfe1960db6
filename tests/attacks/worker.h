// A second thread that does what it is told, one thing at a time.
#pragma once

#include <pthread.h>

#include "attack.h"

namespace attacks {

class Worker {
 public:
  Worker() {
    pthread_mutex_init(&mutex_, nullptr);
    pthread_cond_init(&changed_, nullptr);
    if (pthread_create(&thread_, nullptr, &Worker::main, this) != 0) broken("no second thread");
  }

  // Runs it there, and waits for its end.
  template <typename Task>
  void run(Task task) {
    start(task);
    wait();
  }

  // Runs it there; it must outlive wait().
  template <typename Task>
  void start(Task& task) {
    pthread_mutex_lock(&mutex_);
    call_ = [](void* context) { (*static_cast<Task*>(context))(); };
    context_ = &task;
    pthread_cond_broadcast(&changed_);
    pthread_mutex_unlock(&mutex_);
  }

  void wait() {
    pthread_mutex_lock(&mutex_);
    while (call_ != nullptr) pthread_cond_wait(&changed_, &mutex_);
    pthread_mutex_unlock(&mutex_);
  }

 private:
  static void* main(void* self) { static_cast<Worker*>(self)->serve(); }

  [[noreturn]] void serve() {
    pthread_mutex_lock(&mutex_);
    for (;;) {  // until the trial's _exit
      while (call_ == nullptr) pthread_cond_wait(&changed_, &mutex_);
      pthread_mutex_unlock(&mutex_);
      call_(context_);
      pthread_mutex_lock(&mutex_);
      call_ = nullptr;
      pthread_cond_broadcast(&changed_);
    }
  }

  pthread_t thread_;
  pthread_mutex_t mutex_;
  pthread_cond_t changed_;
  void (*call_)(void*) = nullptr;
  void* context_ = nullptr;
};

}  // namespace attacks
