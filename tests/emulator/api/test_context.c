/* Contexts: the thread's stack of them, primary ones, limits. What a real driver answers was measured. */
#include "check.h"

#include <pthread.h>

static CUcontext current(void)
{
    CUcontext context = (CUcontext)1;
    OK(cuCtxGetCurrent(&context));
    return context;
}

static void test_stack(void)
{
    CUcontext a, b, popped;
    CUdeviceptr address;
    RETURNS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&popped));
    RETURNS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&address, 16));
    OK(cuCtxCreate(&a, NULL, 0, 0));
    OK(cuCtxCreate(&b, NULL, 0, 0));
    EXPECT(current() == b);
    OK(cuCtxSetCurrent(NULL)); /* takes the top away */
    EXPECT(current() == a);
    OK(cuCtxSetCurrent(b)); /* replaces the top */
    OK(cuCtxPopCurrent(&popped));
    EXPECT(popped == b);
    EXPECT(current() == NULL);
    OK(cuCtxPushCurrent(a));
    OK(cuCtxPushCurrent(b));
    OK(cuCtxDestroy(a)); /* stays in the stack, dead */
    EXPECT(current() == b);
    OK(cuCtxPopCurrent(&popped));
    EXPECT(current() == a);
    RETURNS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&address, 16));
    OK(cuCtxPopCurrent(&popped));
    OK(cuCtxSetCurrent(b));
    OK(cuMemAlloc(&address, 16));
    OK(cuCtxDestroy(b)); /* the current one: popped too */
    EXPECT(current() == NULL);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuCtxPushCurrent(NULL));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuCtxDestroy(NULL));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&a, NULL, 0x1000, 0));
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate(&a, NULL, 0, 64));
    for (int i = 0; i < 20; i++) /* deeper than the stack is at first */
        OK(cuCtxCreate(i == 0 ? &a : &b, NULL, 0, 0));
    for (int i = 0; i < 20; i++) {
        OK(cuCtxGetCurrent(&b));
        OK(cuCtxDestroy(b));
    }
    EXPECT(current() == NULL);
}

static void test_primary(void)
{
    CUcontext a, b;
    CUdeviceptr address;
    CUdevice device;
    unsigned int flags;
    int active = -1;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT(active == 0);
    RETURNS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxRetain(&a, 0));
    OK(cuCtxSetCurrent(a));
    OK(cuMemAlloc(&address, 16));
    OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    OK(cuCtxGetFlags(&flags));
    EXPECT(flags == (CU_CTX_SCHED_BLOCKING_SYNC | CU_CTX_MAP_HOST));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT(active == 0 && flags == 0);
    RETURNS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&address, 16));
    OK(cuCtxGetDevice(&device));
    OK(cuDevicePrimaryCtxRetain(&b, 0)); /* the same handle lives again, current where it was */
    EXPECT(a == b);
    OK(cuMemAlloc(&address, 16));
    OK(cuDevicePrimaryCtxReset(0));
    RETURNS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&address, 16));
    OK(cuCtxSetCurrent(b));
    OK(cuDevicePrimaryCtxRetain(&a, 0));
    OK(cuMemAlloc(&address, 16));
    OK(cuMemFree(address));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT(active == 1);
    OK(cuDevicePrimaryCtxRelease(0));
    RETURNS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags(0, 0x100));
    RETURNS(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&a, 64));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxRetain(NULL, 0));
    OK(cuCtxSetCurrent(NULL));
}

static void test_limits(void)
{
    size_t value;
    int least, greatest;
    CUfunc_cache config;
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT(value == 1024);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1000));
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    EXPECT(value == 1008);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (size_t)1 << 40));
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20));
    OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
    EXPECT(value == 32 << 20);
    OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 4 << 20));
    OK(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
    EXPECT(value >= 4 << 20);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit((CUlimit)55, 1));
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    EXPECT(least == 0 && greatest == -5);
    OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    OK(cuCtxGetCacheConfig(&config));
    EXPECT(config == CU_FUNC_CACHE_PREFER_L1);
    RETURNS(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig((CUfunc_cache)9));
}

static void test_queries(CUcontext context)
{
    unsigned int version;
    unsigned long long id, same;
    CUdevice device = -1;
    OK(cuCtxGetApiVersion(context, &version));
    EXPECT(version == 3020);
    OK(cuCtxGetId(context, &id));
    OK(cuCtxGetId(NULL, &same));
    EXPECT(id == same);
    OK(cuCtxGetDevice(&device));
    EXPECT(device == 0);
    device = -1;
    OK(cuCtxGetDevice_v2(&device, context));
    EXPECT(device == 0);
    OK(cuCtxSynchronize());
    OK(cuCtxSynchronize_v2(context));
    RETURNS(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(context, 0));
}

static void *other_thread(void *argument)
{
    (void)argument;
    EXPECT(current() == NULL); /* each thread has its own */
    CUcontext context;
    OK(cuCtxCreate(&context, NULL, 0, 0));
    CUdeviceptr address;
    OK(cuMemAlloc(&address, 16));
    return context;
}

int main(void)
{
    OK(cuInit(0));
    test_stack();
    test_primary();
    CUcontext context = start();
    test_limits();
    test_queries(context);
    RETURNS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(context)); /* a primary one is released instead */
    pthread_t thread;
    void *left = NULL;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, &left);
    OK(cuCtxDestroy(left));
    EXPECT(current() == context);
    return finish();
}
